// Your own module on several processes: convoy launch -n 2 -- ./own_module
// The module, the loss and the loop are plain libtorch; DataParallel shares the batch among ranks, and the printed digest
// is the same for -n 1, 2, 3 and 4.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/optimizer.h"
#include "convoy/spec/sample_plan.h"
#include "convoy/train/session.h"

struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(2, 32));
    second = register_module("second", torch::nn::Linear(32, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) { return second(torch::relu(first(x))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

int main() {
  convoy::train::Session session;

  // The task: is a point inside a ring?
  torch::manual_seed(1);
  const torch::Tensor points = torch::rand({2000, 2}) * 2 - 1;
  const torch::Tensor radius = points.norm(2, 1);
  const torch::Tensor inside = torch::logical_and(radius > 0.4, radius < 0.8).to(torch::kInt64);

  const auto net = std::make_shared<NetImpl>();
  const auto model = convoy::params::make_classifier(net);
  convoy::parallel::DataParallelOptions options;
  options.replicas = 4;
  convoy::parallel::DataParallel parallel(*model, session.group(), options);
  convoy::params::OptimizerOptions adam;
  adam.kind = "adam";
  convoy::params::Optimizer optimizer(parallel.space(), adam);
  convoy::spec::SamplePlanOptions order;
  order.samples = 2000;
  order.global_batch = 128;
  order.replicas = options.replicas;
  const convoy::spec::SamplePlan plan(order);

  double loss = 0;
  for (int step = 0; step < 1000; ++step) {
    std::vector<std::vector<convoy::params::Batch>> batches;
    for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
      const torch::Tensor ids = torch::tensor(plan.replica_samples(step, replica));
      batches.push_back({{points.index_select(0, ids), inside.index_select(0, ids)}});
    }
    const auto result = parallel.step(step, batches);
    optimizer.update(result.gradient, 0.02);
    loss = result.loss;
  }

  const torch::NoGradGuard no_grad;
  const double accuracy = net->forward(points).argmax(1).eq(inside).to(torch::kFloat64).mean().item<double>();
  const std::string digest = parallel.digest();  // all ranks take part
  if (session.rank() == 0) fmt::print("loss {:.3f}, accuracy {:.3f}, digest {}\n", loss, accuracy, digest);
  return 0;
}
