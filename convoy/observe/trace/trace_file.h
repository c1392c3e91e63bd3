// trace.json: the trace of all ranks in the Chrome trace format, for browsers' trace viewers and for `convoy trace`.
//
// A rank is a process with the threads driver, loader and communication. Spans are complete events; a bucket is one on the
// thread communication from when its bytes could move, and beside it an asynchronous event from ready over launched to
// finished. Times are microseconds from the earliest span, on the clock of rank 0.
#pragma once

#include <string>

#include "convoy/base/files.h"
#include "convoy/observe/trace/trace.h"

namespace convoy::observe {

/// Returns the trace as a Chrome trace.
/// Cost:       about 150 bytes a span, 500 a bucket
std::string to_chrome_trace(const Trace& trace);

/// Writes the trace so that a reader sees all of it or none.
/// Errors:     kIo
void write_trace(Files& files, const std::string& path, const Trace& trace);

/// Returns what write_trace wrote, its times to the nanosecond.
/// Errors:     kCorrupt naming the file, and the event where there is one, for what is no trace of a run; kIo
Trace read_trace(Files& files, const std::string& path);

}  // namespace convoy::observe
