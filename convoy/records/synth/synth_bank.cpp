// The bank-marketing table's likeness: same columns and spelling, another truth.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "convoy/base/random.h"
#include "convoy/records/synth/synth.h"

namespace convoy::records {
namespace {

constexpr const char* kHeader =
    "\"age\";\"job\";\"marital\";\"education\";\"default\";\"housing\";\"loan\";\"contact\";\"month\";\"day_of_week\";"
    "\"duration\";\"campaign\";\"pdays\";\"previous\";\"poutcome\";\"emp.var.rate\";\"cons.price.idx\";"
    "\"cons.conf.idx\";\"euribor3m\";\"nr.employed\";\"y\"\n";
constexpr double kPositives = 0.113;

// A value of a category, how often it occurs, and what it does to the chance of "yes".
struct Value {
  const char* name;
  double weight;
  double effect;
};

constexpr std::array<Value, 12> kJobs = {{{"admin.", 25, 0.2},
                                          {"blue-collar", 22, -0.4},
                                          {"technician", 16, 0.0},
                                          {"services", 10, -0.3},
                                          {"management", 7, 0.1},
                                          {"retired", 4, 0.9},
                                          {"entrepreneur", 3.5, -0.2},
                                          {"self-employed", 3.5, 0.0},
                                          {"housemaid", 2.5, 0.0},
                                          {"unemployed", 2.5, 0.3},
                                          {"student", 2, 1.2},
                                          {"unknown", 0.8, 0.0}}};
constexpr std::array<Value, 4> kMarital = {
    {{"married", 60, -0.1}, {"single", 28, 0.2}, {"divorced", 11, 0.0}, {"unknown", 0.2, 0.0}}};
constexpr std::array<Value, 8> kEducation = {{{"university.degree", 30, 0.3},
                                              {"high.school", 23, 0.0},
                                              {"basic.9y", 15, -0.3},
                                              {"professional.course", 13, 0.1},
                                              {"basic.4y", 10, -0.1},
                                              {"basic.6y", 5.5, -0.3},
                                              {"unknown", 4.2, 0.2},
                                              {"illiterate", 0.05, 0.5}}};
constexpr std::array<Value, 3> kDefault = {{{"no", 79, 0.3}, {"unknown", 20.9, -0.5}, {"yes", 0.02, -0.5}}};
constexpr std::array<Value, 3> kHousing = {{{"yes", 52, 0.0}, {"no", 45, 0.0}, {"unknown", 2.4, 0.0}}};
constexpr std::array<Value, 3> kLoan = {{{"no", 82, 0.0}, {"yes", 15, 0.0}, {"unknown", 2.4, 0.0}}};
constexpr std::array<Value, 2> kContact = {{{"cellular", 63, 0.4}, {"telephone", 37, -0.6}}};
constexpr std::array<Value, 3> kOutcome = {{{"nonexistent", 86, 0.0}, {"failure", 10.4, 0.2}, {"success", 3.4, 2.6}}};
constexpr std::array<const char*, 5> kDays = {"mon", "tue", "wed", "thu", "fri"};

// The figures of the economy move with the months, as the official ones do; rows are in the order of their calls.
struct Month {
  const char* name;
  double share, effect, variation, prices, confidence, rate, employed;
};
constexpr std::array<Month, 14> kMonths = {{{"may", 19, -0.6, 1.1, 93.994, -36.4, 4.857, 5191},
                                            {"jun", 11, -0.2, 1.4, 94.465, -41.8, 4.961, 5228.1},
                                            {"jul", 17, -0.3, 1.4, 93.918, -42.7, 4.962, 5228.1},
                                            {"aug", 13, -0.2, 1.4, 93.444, -36.1, 4.965, 5228.1},
                                            {"oct", 1, 0.6, -0.1, 93.798, -40.4, 4.912, 5195.8},
                                            {"nov", 9, -0.1, -0.1, 93.2, -42, 4.12, 5195.8},
                                            {"dec", 0.3, 1.0, -0.2, 92.756, -45.9, 3.563, 5176.3},
                                            {"mar", 0.8, 1.4, -1.8, 92.843, -50, 1.687, 5099.1},
                                            {"apr", 6, 0.5, -1.8, 93.075, -47.1, 1.405, 5099.1},
                                            {"may", 13, 0.3, -1.8, 92.893, -46.2, 1.299, 5099.1},
                                            {"jun", 2, 0.9, -2.9, 92.963, -40.8, 1.26, 5076.2},
                                            {"aug", 2, 0.9, -2.9, 92.201, -31.4, 0.861, 5076.2},
                                            {"sep", 1.3, 1.2, -3.4, 92.379, -29.8, 0.788, 5017.5},
                                            {"nov", 2, 0.9, -3.4, 92.649, -30.1, 0.716, 5017.5}}};

template <typename Values>
const auto& draw(const Values& values, double at, double Values::value_type::*weight) {
  double sum = 0.0;
  for (const auto& value : values) sum += value.*weight;
  double left = at * sum;
  for (const auto& value : values) {
    left -= value.*weight;
    if (left < 0.0) return value;
  }
  return values.back();
}

struct Row {
  std::string before_duration;
  std::string after_duration;
  double score = 0.0;
  double luck = 0.0;
  double call = 0.0;
};

Row draw_row(const SynthOptions& options, std::int64_t number) {
  RandomStream stream(StreamPurpose::kSynthesis, {options.seed, 2, static_cast<std::uint64_t>(number)});
  Row row;
  const auto pick = [&](const auto& values) {
    const Value& value = draw(values, stream.uniform(), &Value::weight);
    row.score += value.effect;
    return fmt::format("\"{}\"", value.name);
  };
  const int age = std::clamp(static_cast<int>(40.0 + 10.5 * stream.normal()), 17, 98);
  row.score += 0.0015 * (age - 42) * (age - 42);
  const std::string job = pick(kJobs), marital = pick(kMarital), education = pick(kEducation);
  const std::string in_default = pick(kDefault), housing = pick(kHousing), loan = pick(kLoan), contact = pick(kContact);
  const double when = (static_cast<double>(number) + 0.5) / static_cast<double>(options.samples);
  const Month& month = draw(kMonths, when, &Month::share);
  row.score += month.effect;
  const std::string outcome = pick(kOutcome);
  const bool contacted = outcome != "\"nonexistent\"";
  const bool lately = outcome == "\"success\"";
  const auto campaign = 1 + static_cast<int>(-2.2 * std::log(1.0 - stream.uniform()));
  row.score -= 0.08 * std::min(campaign, 12);
  const int pdays = lately ? static_cast<int>(2 + stream.below(20)) : 999;
  const int previous = contacted ? 1 + static_cast<int>(stream.below(3)) : 0;
  const double rate = month.rate + 0.001 * static_cast<double>(stream.below(9));
  row.before_duration = fmt::format("{};{};{};{};{};{};{};{};\"{}\";\"{}\";", age, job, marital, education, in_default,
                                    housing, loan, contact, month.name, kDays[stream.below(kDays.size())]);
  row.after_duration = fmt::format(";{};{};{};{};{};{};{};{:.3f};{};", campaign, pdays, previous, outcome,
                                   month.variation, month.prices, month.confidence, rate, month.employed);
  row.score *= 1.6;
  row.luck = stream.uniform();
  row.call = stream.normal();
  return row;
}

double chance(double score) { return 1.0 / (1.0 + std::exp(-score)); }

// The shift of all scores that gives the wanted share of "yes" on average.
double find_shift(const std::vector<Row>& rows) {
  double low = -30.0;
  double high = 30.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2.0;
    double sum = 0.0;
    for (const Row& row : rows) sum += chance(row.score + middle);
    (sum > kPositives * static_cast<double>(rows.size()) ? high : low) = middle;
  }
  return low;
}

}  // namespace

std::vector<std::string> synth_bank(Files& files, const std::string& folder, const SynthOptions& options) {
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < options.samples; ++i) rows.push_back(draw_row(options, i));
  const double shift = find_shift(rows);
  std::string text = kHeader;
  for (const Row& row : rows) {
    const bool yes = row.luck < chance(row.score + shift);
    const auto duration = static_cast<int>(std::exp(5.1 + (yes ? 1.5 : 0.0) + 0.5 * row.call));
    text += fmt::format("{}{}{}\"{}\"\n", row.before_duration, duration, row.after_duration, yes ? "yes" : "no");
  }
  files.make_directories(folder);
  write_atomic(files, folder + "/bank-additional-full.csv", text);
  return {"bank-additional-full.csv"};
}

}  // namespace convoy::records
