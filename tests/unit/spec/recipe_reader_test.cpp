// Every way of getting a recipe wrong ends in one line that says where, what, and what was probably meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/spec/recipe.h"
#include "tests/unit/spec/recipe_fixtures.h"

namespace convoy::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(RecipeReader, TakesDefaultsForWhatIsNotSaid) {
  EXPECT_EQ(parse_recipe("", "r.toml"), Recipe{});
  EXPECT_EQ(parse_recipe("# nothing\n[train]\n", "r.toml"), Recipe{});
}

TEST(RecipeReader, ReadsEachTypeOfKey) {
  const Recipe recipe = parse_recipe(
      "[model]\nname = \"my \\\"net\\\"\"\nhidden = [7,\n 5]\n[train]\nglobal_batch = 77\nlearning_rate = 0.25\n"
      "drop_last = true\n",
      "r.toml");
  EXPECT_EQ(recipe.model.name, "my \"net\"");
  EXPECT_EQ(recipe.model.hidden, (std::vector<std::int64_t>{7, 5}));
  EXPECT_EQ(recipe.train.global_batch, 77);
  EXPECT_EQ(recipe.train.learning_rate, 0.25);
  EXPECT_TRUE(recipe.train.drop_last);
}

TEST(RecipeReader, ReadsWhateverWayTomlSpellsATable) {
  Recipe expected;
  expected.train.steps = 20;
  expected.train.drop_last = true;
  for (const char* text :
       {"[train]\nsteps = 20\ndrop_last = true\n", "train.steps = 20\ntrain.drop_last = true\n",
        "train = {steps = 20, drop_last = true}\n", "\"train\".'steps' = 20\r\ntrain.drop_last = true",
        "\xef\xbb\xbf[train]\nsteps = 2_0\ndrop_last = true"}) {
    EXPECT_EQ(parse_recipe(text, "r.toml"), expected) << text;
  }
}

TEST(RecipeReader, NamesTheLineAndTheNearestKeyForAMisspeltOne) {
  EXPECT_EQ(refusal("[task]\nname = \"a\"\n\n[train]\nlearning_rat = 0.1\n"),
            "r.toml:5: [train] key 'learning_rat': unknown key (did you mean 'learning_rate'?)");
  EXPECT_EQ(refusal("[train]\nqqqqqqqq = 1\n"), "r.toml:2: [train] key 'qqqqqqqq': unknown key");
  EXPECT_EQ(refusal("[data]\nlearning_rat = 1\n"),
            "r.toml:2: [data] key 'learning_rat': unknown key (did you mean 'learning_rate' in [train]?)");
}

TEST(RecipeReader, SaysWhereAMisplacedKeyBelongs) {
  EXPECT_EQ(refusal("[model]\nlearning_rate = 0.1\n"),
            "r.toml:2: [model] key 'learning_rate': misplaced: it belongs to [train]");
  EXPECT_EQ(refusal("learning_rate = 0.1\n"), "r.toml:1: key 'learning_rate': misplaced: it belongs to [train]");
  EXPECT_EQ(refusal("[train]\nname = \"a\"\n"),
            "r.toml:2: [train] key 'name': misplaced: it belongs to [task] or [model]");
  EXPECT_EQ(refusal("learning_rat = 0.1\n"),
            "r.toml:1: key 'learning_rat': unknown key (did you mean 'learning_rate' in [train]?)");
}

TEST(RecipeReader, RefusesAnUnknownTableEvenAnEmptyOne) {
  EXPECT_EQ(refusal("[trian]\nsteps = 1\n"), "r.toml:1: [trian]: unknown table (did you mean 'train'?)");
  EXPECT_EQ(
      refusal("\n[optimizer]\n"),
      "r.toml:2: [optimizer]: unknown table (tables: task, data, model, train, replicas, parallel, comm, checkpoint, "
      "measure, cost)");
}

TEST(RecipeReader, RefusesATableThatIsAValueOrAList) {
  EXPECT_EQ(refusal("train = 5\n"), "r.toml:1: key 'train': must be a table, [train], not an integer");
  EXPECT_EQ(refusal("[[train]]\nsteps = 5\n"), "r.toml:1: key 'train': must be a table, [train], not a list of tables");
  EXPECT_EQ(refusal("[train.steps]\n"), "r.toml:1: [train] key 'steps': must be an integer, not a table");
}

TEST(RecipeReader, RefusesAKeyOrTableGivenTwice) {
  EXPECT_EQ(refusal("[model]\ndropout = 0.1\n[train]\nsteps = 1\n# again\nsteps = 1\n"),
            "r.toml:6: [train] key 'steps': given twice");
  EXPECT_EQ(refusal("[train]\nsteps = 1\n[train]\nepochs = 1\n"), "r.toml:3: [train]: the table is given twice");
  EXPECT_THAT(refusal("train.steps = 1\n[train]\nsteps = 1\n"), HasSubstr("train"));
}

TEST(RecipeReader, RefusesAWrongType) {
  EXPECT_EQ(refusal("[train]\nlearning_rate = \"fast\"\n"),
            "r.toml:2: [train] key 'learning_rate': must be a number, not the text \"fast\"");
  EXPECT_EQ(refusal("[train]\nsteps = \"20\"\n"),
            "r.toml:2: [train] key 'steps': must be an integer, not the text \"20\"");
  EXPECT_EQ(refusal("[train]\nsteps = 20.5\n"),
            "r.toml:2: [train] key 'steps': must be an integer, not the number 20.5");
  EXPECT_EQ(refusal("[train]\nsteps = nan\n"), "r.toml:2: [train] key 'steps': must be an integer, not the number nan");
  EXPECT_EQ(refusal("[train]\nsteps = 1e300\n"),
            "r.toml:2: [train] key 'steps': must be an integer, not the number 1e+300");
  EXPECT_EQ(refusal("[train]\nnesterov = 1\n"),
            "r.toml:2: [train] key 'nesterov': must be true or false, not an integer");
  EXPECT_EQ(refusal("[model]\nname = 5\n"), "r.toml:2: [model] key 'name': must be a text, not an integer");
  EXPECT_EQ(refusal("[model]\nhidden = 5\n"),
            "r.toml:2: [model] key 'hidden': must be a list of integers, not an integer");
  EXPECT_EQ(refusal("[model]\nhidden = [5, 0.5]\n"),
            "r.toml:2: [model] key 'hidden': must be a list of integers, not a list that holds neither integers only nor texts only");
  EXPECT_EQ(refusal("[task]\nseed = 2024-05-01\n"), "r.toml:2: [task] key 'seed': must be an integer, not a date");
}

TEST(RecipeReader, TakesAnIntegerForANumberAndAWholeNumberForAnInteger) {
  EXPECT_EQ(parse_recipe("[train]\nlearning_rate = 1\n", "r.toml").train.learning_rate, 1.0);
  EXPECT_EQ(parse_recipe("[train]\nsteps = 1e3\n", "r.toml").train.steps, 1000);
}

TEST(RecipeReader, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(refusal("[train]\nglobal_batch = 0\n"),
            "r.toml:2: [train] key 'global_batch': must be at least 1 and at most 1073741824, not 0");
  EXPECT_EQ(refusal("[train]\nlearning_rate = 0.0\n"), "r.toml:2: [train] key 'learning_rate': must be above 0, not 0");
  EXPECT_EQ(refusal("[train]\nlearning_rate = inf\n"),
            "r.toml:2: [train] key 'learning_rate': must be a finite number, not inf");
  EXPECT_EQ(refusal("[model]\ndropout = 1.0\n"),
            "r.toml:2: [model] key 'dropout': must be at least 0 and below 1, not 1");
  EXPECT_EQ(refusal("[model]\nhidden = [8, 0]\n"),
            "r.toml:2: [model] key 'hidden': each element must be at least 1 and at most 16777216, not 0");
  EXPECT_EQ(refusal("[model]\nhidden = []\n"), "r.toml:2: [model] key 'hidden': must hold 1 to 64 integers, not 0");
  EXPECT_EQ(refusal("[model]\nname = \"\"\n"), "r.toml:2: [model] key 'name': must not be empty");
  EXPECT_THAT(refusal("[task]\nseed = 9223372036854775808\n"), StartsWith("r.toml:2: not valid TOML"));
  EXPECT_EQ(parse_recipe("[task]\nseed = 9223372036854775807\n", "r").task.seed, 9223372036854775807);
}

TEST(RecipeReader, ListsTheChoicesAndTheNearestForABadOne) {
  EXPECT_EQ(
      refusal("[train]\noptimizer = \"adamm\"\n"),
      "r.toml:2: [train] key 'optimizer': must be one of \"sgd\", \"adam\", \"adamw\", not \"adamm\" (did you mean "
      "'adam'?)");
  EXPECT_THAT(refusal("[data]\nformat = \"cifar\"\n"),
              StartsWith("r.toml:2: [data] key 'format': must be one of \"idx\""));
}

TEST(RecipeReader, ReportsTheFirstMistakeOfTheFile) {
  EXPECT_THAT(refusal("[train]\nsteps = \"x\"\n[data]\nflop = true\n[aaa]\n"), StartsWith("r.toml:2: "));
  EXPECT_THAT(refusal("[zzz]\n[aaa]\n"), StartsWith("r.toml:1: [zzz]"));
  EXPECT_THAT(refusal("[train]\nzzz = 1\naaa = 1\n"), StartsWith("r.toml:2: [train] key 'zzz'"));
}

TEST(RecipeReader, NamesTheLineOfTextThatIsNotToml) {
  EXPECT_THAT(refusal("[train]\nsteps =\n"), StartsWith("r.toml:2: not valid TOML: "));
  EXPECT_THAT(refusal("[train]\nsteps = 1\n\nepochs 3\n"), StartsWith("r.toml:4: not valid TOML: "));
  EXPECT_THAT(refusal("[train\n"), StartsWith("r.toml:1: not valid TOML: "));
}

TEST(RecipeReader, RefusesTextThatIsNotUtf8NamingTheLine) {
  for (const std::string broken :
       {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\x80"}) {
    EXPECT_THAT(refusal("[task]\n\nname = \"" + broken + "\"\n"), StartsWith("r.toml:3: not valid UTF-8 (byte 0x"));
    EXPECT_THAT(refusal("[task]\n# " + broken), StartsWith("r.toml:2: not valid UTF-8 (byte 0x"));
  }
  EXPECT_EQ(parse_recipe("[task]\nname = \"\xe8\x88\xb9\xf0\x9f\x9a\xa2\"\n", "r").task.name,
            "\xe8\x88\xb9\xf0\x9f\x9a\xa2");
}

TEST(RecipeReader, RefusesTextMadeToExhaustIt) {
  std::string dots = "a";
  for (int i = 0; i < 20000; ++i) dots += ".a";
  EXPECT_EQ(refusal("[train]\n" + dots + " = 1\n"), "r.toml:2: more than 64 dots in one line");
  EXPECT_EQ(refusal("# " + std::string(500, '.') + "\n"), "accepted");
  EXPECT_THAT(refusal("[model]\nhidden = " + std::string(50000, '[')), StartsWith("r.toml:2: not valid TOML"));
  EXPECT_EQ(refusal(std::string((1 << 16) + 1, '\n')), "r.toml:1: a recipe is at most 65536 bytes long");
  EXPECT_THAT(refusal("[train]\n" + std::string(60000, 'k') + " = 1\n"), HasSubstr("unknown key"));
}

TEST(RecipeReader, SaysEverythingInOneShortLine) {
  for (const std::string text : {"[train]\n\"a\\nb\" = 1\n", "\"\\u0007\" = 1\n", "[train]\noptimizer = \"a\\nb\"\n"}) {
    const std::string message = refusal(text);
    EXPECT_EQ(message.find_first_of("\n\r\a"), std::string::npos) << message;
    EXPECT_LT(message.size(), 300u);
  }
}

TEST(RecipeReader, ReadsAFileAndNamesAMissingOne) {
  const auto path = std::filesystem::temp_directory_path() / "convoy_recipe_reader_test.toml";
  local_files().write(path.string(), std::vector<std::string_view>{"[train]\n", "steps = 3\n"});
  EXPECT_EQ(read_recipe(path.string(), {"train.epochs=0"}).train.steps, 3);
  local_files().remove(path.string());
  try {
    read_recipe(path.string());
    FAIL() << "a missing file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
  }
}

TEST(RecipeOverride, ReplacesTheFilesValue) {
  const Recipe recipe = parse_recipe("[train]\nsteps = 5\n", "r.toml",
                                     {"train.steps=20", "model.name=mlp", "model.hidden=[64,32]", "data.flip=true",
                                      " train.learning_rate = 1e-3 ", "data.path=", "task.name='its'"});
  EXPECT_EQ(recipe.train.steps, 20);
  EXPECT_EQ(recipe.model.name, "mlp");
  EXPECT_EQ(recipe.model.hidden, (std::vector<std::int64_t>{64, 32}));
  EXPECT_TRUE(recipe.data.flip);
  EXPECT_EQ(recipe.train.learning_rate, 1e-3);
}

TEST(RecipeOverride, TakesATextWithOrWithoutQuotes) {
  const auto name = [](const std::string& value) {
    return parse_recipe("", "r.toml", {"task.name=" + value}).task.name;
  };
  EXPECT_EQ(name("run 7 = x # y"), "run 7 = x # y");
  EXPECT_EQ(name("\"a\\tb\""), "a\tb");
  EXPECT_EQ(name("2024"), "2024");
  EXPECT_EQ(name("true"), "true");
  EXPECT_EQ(name(""), "");
}

TEST(RecipeOverride, LetsTheLastOneWin) {
  EXPECT_EQ(parse_recipe("", "r.toml", {"train.steps=1", "train.steps=2"}).train.steps, 2);
}

TEST(RecipeOverride, NamesTheOptionInItsErrors) {
  const auto option = [](const std::string& text) { return refusal("", {text}); };
  EXPECT_EQ(option("train.step=2"), "--set train.step=2: [train] key 'step': unknown key (did you mean 'steps'?)");
  EXPECT_EQ(option("model.steps=2"), "--set model.steps=2: [model] key 'steps': misplaced: it belongs to [train]");
  EXPECT_EQ(option("trian.steps=2"), "--set trian.steps=2: [trian]: unknown table (did you mean 'train'?)");
  EXPECT_EQ(option("train.steps=many"), "--set train.steps=many: [train] key 'steps': must be an integer, not 'many'");
  EXPECT_EQ(option("train.steps="), "--set train.steps=: [train] key 'steps': must be an integer, not ''");
  EXPECT_EQ(option("train.steps=1\nepochs=2"),
            "--set train.steps=1?epochs=2: [train] key 'steps': must be an integer, and nothing after it");
  EXPECT_EQ(option("train.steps=-1"), "--set train.steps=-1: [train] key 'steps': must be at least 0, not -1");
  EXPECT_EQ(option("model.dtype=int8"),
            "--set model.dtype=int8: [model] key 'dtype': must be one of \"float32\", \"float64\", not \"int8\"");
  for (const char* text : {"train.steps", "steps=3", "=", "", "."})
    EXPECT_THAT(option(text), HasSubstr("write table.key=value"));
  EXPECT_THAT(option("task.name=\xff"), HasSubstr("not valid UTF-8"));
}

TEST(RecipeDemands, AreMetOrNamedWithTheKeySetByHand) {
  EXPECT_EQ(
      refusal("[train]\nnesterov = true\n"),
      "r.toml:2: [train] key 'nesterov': Nesterov's momentum needs momentum above 0 and dampening 0 (train.nesterov "
      "= true, train.momentum = 0.0, train.dampening = 0.0)");
  EXPECT_EQ(
      refusal("[replicas]\n\ncount = 200\n"),
      "r.toml:3: [replicas] key 'count': each micro-batch of each replica needs a sample: replicas times accumulation "
      "must not exceed the global batch (train.global_batch = 128, replicas.count = 200, train.accumulation = 1)");
  EXPECT_THAT(refusal("[train]\nmomentum = 0.9\n", {"train.optimizer=adam"}),
              StartsWith("r.toml:2: [train] key 'momentum'"));
  EXPECT_THAT(refusal("", {"train.epochs=0"}), StartsWith("--set train.epochs=0: [train] key 'epochs'"));
}

// Each demand broken by the smallest recipe, and met by the smallest change of it.
TEST(RecipeDemands, TellTheBrokenFromTheMet) {
  const struct {
    const char* broken;
    const char* met;
    const char* key;
  } cases[] = {
      {"epochs = 0", "epochs = 0\nsteps = 1", "'epochs'"},
      {"target_metric = \"loss\"", "target_metric = \"loss\"\ntarget = 2.5", "'target_metric'"},
      {"target = 0.9", "target = 0.9\ntarget_metric = \"accuracy\"", "'target'"},
      {"target = 1.5\ntarget_metric = \"macro_f1\"", "target = 1.0\ntarget_metric = \"macro_f1\"", "'target'"},
      {"target = 0.9\ntarget_metric = \"accuracy\"\nevaluate_every = 0", "evaluate_every = 0", "'target_metric'"},
      {"accumulation = 65", "accumulation = 64", "'accumulation'"},
      {"momentum = 0.9\noptimizer = \"adamw\"", "momentum = 0.9", "'momentum'"},
      {"dampening = 0.1", "dampening = 0.1\nmomentum = 0.1", "'dampening'"},
      {"dampening = 0.1\noptimizer = \"adam\"", "optimizer = \"adam\"", "'dampening'"},
      {"nesterov = true\nmomentum = 0.9\ndampening = 0.1", "nesterov = true\nmomentum = 0.9", "'nesterov'"},
      {"nesterov = true\noptimizer = \"adam\"", "optimizer = \"adam\"", "'nesterov'"},
      {"beta1 = 0.8", "beta1 = 0.8\noptimizer = \"adam\"", "'beta1'"},
      {"epsilon = 1e-7", "epsilon = 1e-8", "'epsilon'"},
      {"schedule = \"step\"", "schedule = \"step\"\nschedule_every = 10", "'schedule'"},
      {"schedule_every = 10\nschedule = \"cosine\"", "schedule = \"cosine\"", "'schedule_every'"},
      {"schedule_factor = 0.5", "schedule_factor = 0.5\nschedule = \"step\"\nschedule_every = 1", "'schedule_factor'"},
      {"final_fraction = 0.1", "final_fraction = 0.1\nschedule = \"linear\"", "'final_fraction'"},
      {"drop_last = true\n[data]\nlimit = 100", "drop_last = true\n[data]\nlimit = 128", "'limit'"},
      {"target = 0.9\ntarget_metric = \"accuracy\"\n[data]\nvalidation = 0", "[data]\nvalidation = 0",
       "'target_metric'"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(refusal(std::string("[train]\n") + one.broken), HasSubstr(std::string("key ") + one.key)) << one.broken;
    EXPECT_EQ(refusal(std::string("[train]\n") + one.met), "accepted") << one.met;
  }
}

TEST(RecipeDemands, DoNotCountReplicasThatAreOff) {
  EXPECT_EQ(refusal("[replicas]\nmode = \"off\"\ncount = 200\n"), "accepted");
}

TEST(RecipeDemands, DealReplicasOutByMeasurementOnlyWhereThereAreReplicas) {
  EXPECT_EQ(refusal("[parallel]\nshare = \"auto\"\n"), "accepted");
  EXPECT_EQ(refusal("[parallel]\nshare = \"auto\"\n[replicas]\nmode = \"off\"\n"),
            "r.toml:2: [parallel] key 'share': what share = \"auto\" deals out are replicas: with mode = \"off\" each rank "
            "has its one shard (parallel.share = \"auto\", replicas.mode = \"off\")");
  EXPECT_EQ(refusal("[parallel]\nshare = \"even\"\n[replicas]\nmode = \"off\"\n"), "accepted");
}

TEST(RecipeDemands, TakeOnlyAlgorithmsWithOrderedSumsWithReplicas) {
  EXPECT_EQ(refusal("[comm]\nalgorithm = \"ordered_direct\"\n"), "accepted");
  EXPECT_EQ(refusal("[comm]\nalgorithm = \"ring\"\n"),
            "r.toml:2: [comm] key 'algorithm': with replicas, results do not depend on the number of ranks, so only "
            "algorithms whose sums do not are taken: ordered_exchange, ordered_direct and ordered_hierarchical "
            "(comm.algorithm = \"ring\", replicas.mode = \"on\")");
  EXPECT_EQ(refusal("[comm]\nalgorithm = \"ring\"\n[replicas]\nmode = \"off\"\n"), "accepted");
  EXPECT_THAT(refusal("[comm]\nalgorithm = \"rong\"\n"), HasSubstr("not \"rong\" (did you mean 'ring'?)"));
}

TEST(ExampleRecipes, AllParse) {
  int read = 0;
  for (const auto& file : std::filesystem::directory_iterator(CONVOY_SOURCE_DIR "/examples/recipes")) {
    if (file.path().extension() != ".toml") continue;
    EXPECT_NO_THROW(read_recipe(file.path().string())) << file.path();
    EXPECT_EQ(local_files().read(file.path().string()).front(), '#') << file.path() << " opens with what it shows";
    ++read;
  }
  EXPECT_GE(read, 3);
}

TEST(ExampleRecipes, SayWhatTheirNamesPromise) {
  const Recipe cnn = read_recipe(CONVOY_SOURCE_DIR "/examples/recipes/fashion_cnn.toml");
  EXPECT_EQ(cnn.model.name, "cnn");
  EXPECT_TRUE(cnn.model.batch_norm);
  EXPECT_GT(cnn.model.dropout, 0.0);
  EXPECT_GT(cnn.train.clip_norm, 0.0);
  EXPECT_GT(cnn.train.momentum, 0.0);
  EXPECT_EQ(read_recipe(CONVOY_SOURCE_DIR "/examples/recipes/fashion_mlp.toml").model.name, "mlp");
  EXPECT_EQ(read_recipe(CONVOY_SOURCE_DIR "/examples/recipes/fashion_softmax.toml").model.dtype, "float64");
}

}  // namespace
}  // namespace convoy::spec
