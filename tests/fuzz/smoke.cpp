// Runs a fuzz target without a fuzzer, for some seconds: inputs put together from the pieces of its dictionary and random
// bytes, and damaged ones of those. The order of inputs is fixed; an input that ends the program is left in a file.
//
// Usage: fuzz_smoke_NAME SECONDS [DICTIONARY]
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using convoy::RandomStream;

constexpr const char* kFinding = "fuzz_smoke_finding";
constexpr std::size_t kLongest = 4096;
constexpr std::size_t kPool = 256;

// The input in use, for the handler that leaves it behind.
std::string current;

void leave_finding(int signal) {
  const int file = ::open(kFinding, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file >= 0) {
    [[maybe_unused]] const auto written = ::write(file, current.data(), current.size());
    ::close(file);
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Reads one piece of a libFuzzer dictionary: a text in quotes with \xNN, \\ and \" in it.
std::string read_piece(const std::string& line) {
  std::string piece;
  for (std::size_t i = 1; i < line.size() && line[i] != '"'; ++i) {
    if (line[i] != '\\') {
      piece += line[i];
    } else if (line[++i] == 'x') {
      piece += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      piece += line[i];
    }
  }
  return piece;
}

std::vector<std::string> read_dictionary(const char* path) {
  std::vector<std::string> pieces;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() == '"') pieces.push_back(read_piece(line));
  }
  return pieces;
}

std::string random_bytes(RandomStream& random, std::size_t most) {
  std::string bytes(random.below(most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  return bytes;
}

// Some pieces one after the other, random bytes between a few of them.
std::string compose(const std::vector<std::string>& pieces, RandomStream& random) {
  std::string input(1, static_cast<char>(random.below(256)));
  for (std::uint64_t i = random.below(24); i > 0; --i) {
    input += pieces.empty() || random.below(6) == 0 ? random_bytes(random, 6) : pieces[random.below(pieces.size())];
  }
  return input;
}

void damage(std::string& input, const std::vector<std::string>& pieces, RandomStream& random) {
  const std::size_t at = random.below(input.size() + 1);
  const std::size_t length = std::min<std::size_t>(random.below(16), input.size() - at);
  switch (random.below(6)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 1: input.insert(at, random_bytes(random, 4)); break;
    case 2:
      if (!pieces.empty()) input.insert(at, pieces[random.below(pieces.size())]);
      break;
    case 3: input.erase(at, length); break;
    case 4: input.insert(random.below(input.size() + 1), input.substr(at, length)); break;
    default: input.resize(at); break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (const int signal : {SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) ::signal(signal, leave_finding);
  const std::vector<std::string> pieces = argc > 2 ? read_dictionary(argv[2]) : std::vector<std::string>{};
  RandomStream random(1);
  std::vector<std::string> pool;
  const convoy::Deadline deadline(convoy::system_clock(), std::chrono::seconds(std::atoi(argv[1])));
  std::uint64_t inputs = 0;
  for (; !deadline.expired(); ++inputs) {
    current = pool.size() < kPool || random.below(4) == 0 ? compose(pieces, random) : pool[random.below(kPool)];
    for (std::uint64_t i = random.below(5); i > 0; --i) damage(current, pieces, random);
    if (current.size() > kLongest) current.resize(kLongest);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
    if (pool.size() < kPool) {
      pool.push_back(current);
    } else {
      pool[random.below(kPool)] = current;
    }
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(inputs));
  return inputs > 0 ? 0 : 1;
}
