// Group: ranks that run collective operations together, with a generation, a deadline and a way to give up together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/dtype.h"
#include "convoy/base/error.h"
#include "convoy/comm/buffer.h"
#include "convoy/comm/transport.h"
#include "convoy/comm/wire/wire_format.h"
#include "convoy/comm/work.h"
#include "convoy/law/price.h"
#include "convoy/spec/schedule/schedule.h"
#include "convoy/spec/topology.h"

namespace convoy::comm {

class Selection;

/// A collective operation that a rank asks its group for.
struct Collective {
  /// What every rank does; the same on all ranks (built by the same pure function from the same arguments).
  std::shared_ptr<const spec::Schedule> schedule;
  /// This rank's inputs, as many as the schedule says.
  std::vector<Buffer> inputs;
  /// This rank's output. It may be the memory of an input.
  Buffer output;
  /// The element type of all buffers.
  DType dtype = DType::kFloat32;
  /// How contributions are combined.
  ReduceOp reduce = ReduceOp::kSum;
  /// How float32 elements of an all-reduce, reduce-scatter or reduce are written between ranks. Sums are float32, and all
  /// ranks end with the same bits; which these are depends on the algorithm and the ranks.
  Compression compression;
  /// With compression and one input: what was lost of this rank's earlier inputs. It is added to the input, and holds
  /// afterwards what was lost now (anything, when the operation fails). As long as the input, or empty.
  Buffer residual;
};

/// Ranks that run collective operations together.
/// Collective: every rank submits the same operations in the same order
/// Threads:    submit from one thread at a time; abort from any
/// Errors:     kDesync when ranks submit different operations (both sides named, buffers unchanged); kTimeout naming
///             the culprit by the progress board; kAborted naming the rank that failed first
class Group {
 public:
  virtual ~Group() = default;
  /// Returns the group's name.
  virtual const std::string& name() const = 0;
  /// Returns this rank's number in the group.
  virtual int rank() const = 0;
  /// Returns the number of ranks.
  virtual int size() const = 0;
  /// Returns the generation: how often the group was formed anew.
  virtual std::uint64_t generation() const = 0;
  /// Returns the longest wait of an operation.
  virtual Duration timeout() const = 0;
  /// Starts an operation; operations run in the order in which they were submitted.
  /// Blocking:   returns once enqueued
  [[nodiscard]] virtual Work submit(Collective collective) = 0;
  /// Runs an operation to its end: on the caller's thread where nothing else is in flight, which saves two hand-overs.
  /// Blocking:   until it is done, at most timeout() after those before it
  /// Errors:     as an operation's work
  virtual void run(Collective collective) { submit(std::move(collective)).wait(); }
  /// Ends all operations on all ranks with kAborted naming this rank and the error. The first abort stays.
  virtual void abort(const Error& error) = 0;
  /// Returns the payload bytes that this rank has sent.
  virtual std::uint64_t sent_bytes() const = 0;
  /// Returns how many bytes an all-reduce may have to be done in one direct exchange; the same on all ranks. 0 for none.
  virtual std::size_t small_bytes() const { return 0; }
  /// Does a small all-reduce on the caller's thread, if it can do so now; the memory is contiguous.
  /// Blocking:   until it is done, at most timeout(); returns false at once where it must be submitted instead
  /// Errors:     as an operation's work
  virtual bool try_all_reduce(const std::byte* /*input*/, std::byte* /*output*/, std::int64_t /*elements*/,
                              DType /*dtype*/, ReduceOp /*reduce*/) {
    return false;
  }
  /// Returns the host of each rank, numbered in the order of their first ranks; empty or all equal for one host.
  virtual spec::HostOfRank hosts() const { return {}; }
  /// Returns what chooses this group's algorithms (engine/selection.h); null takes the built-in rules.
  /// Threads:    as submit
  virtual Selection* selection() { return nullptr; }
  /// Returns the schedule that was built under this key, building it when it is not among the newest.
  /// Threads:    as submit
  virtual std::shared_ptr<const spec::Schedule> schedule(const std::string& key,
                                                         const std::function<spec::Schedule()>& build) = 0;
};

/// How a group chooses its algorithms; the same on all ranks.
/// See:        docs/collectives.md
struct SelectionOptions {
  /// What every all-reduce is done by that is too large for publication: an algorithm of the registry, or "auto".
  std::string algorithm = "auto";
  /// Takes only algorithms whose bits do not depend on who carries which replica.
  bool reproducible = true;
  /// The host of each rank; empty: join_group finds them, and make_group takes all ranks to be on one.
  spec::HostOfRank hosts;
  /// What messages and sums cost; join_group hands rank 0's to all. Without it the built-in rules choose.
  std::optional<law::Machine> machine;
};

/// How a group behaves.
struct GroupOptions {
  /// The name in messages.
  std::string name = "world";
  /// How often the group was formed anew.
  std::uint64_t generation = 1;
  /// The longest wait of an operation, from the moment at which this rank begins it.
  Duration timeout = std::chrono::seconds(60);
  /// A peer without a sign of life for this long is called silent in messages.
  Duration silent_after = std::chrono::milliseconds(1500);
  /// Reductions work through this many bytes at a time.
  std::int64_t chunk_bytes = 1 << 18;
  /// What the results of all ranks on one host may have together before they are stored past the caches; 0 for the size
  /// of the processor's largest cache.
  std::int64_t cache_bytes = 0;
  /// The folder into which this rank writes its newest operations when the group fails (observe/flight_recorder.h);
  /// empty: nothing is written.
  std::string recorder_folder;
  /// How it chooses algorithms.
  SelectionOptions selection;
};

/// Makes a group whose operations are run by a progress thread over a transport.
/// Ownership:  the group owns the transport; destroying it aborts what is still running, and joins the thread
std::unique_ptr<Group> make_group(std::unique_ptr<Transport> transport, const GroupOptions& options);

/// Sums partials along the canonical tree and gives every rank the result. `inputs` are this rank's maximal subtrees
/// from left to right; `output` is as long as each of them. A mean divides by the layout's leaves.
[[nodiscard]] Work ordered_all_reduce_async(Group& group, const spec::OrderedLayout& layout, std::vector<Buffer> inputs,
                                            Buffer output, DType dtype, ReduceOp reduce = ReduceOp::kSum);

/// The same of float32 elements in a wire format; see Collective::compression and residual.
[[nodiscard]] Work compressed_all_reduce_async(Group& group, const spec::OrderedLayout& layout,
                                               std::vector<Buffer> inputs, Buffer output,
                                               const Compression& compression, ReduceOp reduce = ReduceOp::kSum,
                                               Buffer residual = {});

/// Combines every rank's input into every rank's output, in rank order along the canonical tree over ranks.
[[nodiscard]] Work all_reduce_async(Group& group, Buffer input, Buffer output, DType dtype,
                                    ReduceOp reduce = ReduceOp::kSum);

/// The same, done when it returns; small ones in about the time of one exchange between processors.
/// Shapes:     input and output of `elements` elements; they may be the same memory
void all_reduce(Group& group, const void* input, void* output, std::int64_t elements, DType dtype,
                ReduceOp reduce = ReduceOp::kSum);

/// Combines every rank's input and gives rank r shard r of the result (spec::shard_range).
[[nodiscard]] Work reduce_scatter_async(Group& group, Buffer input, Buffer output, DType dtype,
                                        ReduceOp reduce = ReduceOp::kSum);

/// Sums partials as ordered_all_reduce_async does and gives rank r elements spec::shard_range(elements, size, r) of the
/// sum, which is what `output` is long. `elements` is the length of the whole; a rank without replicas has no input.
[[nodiscard]] Work ordered_reduce_scatter_async(Group& group, const spec::OrderedLayout& layout,
                                                std::vector<Buffer> inputs, Buffer output, std::int64_t elements,
                                                DType dtype);

/// Gives every rank all inputs, in rank order; `parts` are the elements of each rank's input.
[[nodiscard]] Work all_gather_async(Group& group, Buffer input, Buffer output, const std::vector<std::int64_t>& parts,
                                    DType dtype);

/// Gives every rank the root's buffer.
[[nodiscard]] Work broadcast_async(Group& group, Buffer buffer, int root, DType dtype);

/// Returns when every rank has called it.
void barrier(Group& group);

/// Combines one number of each rank.
double all_reduce_number(Group& group, double value, ReduceOp reduce);

}  // namespace convoy::comm
