#include "convoy/train/event_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace convoy::train {
namespace {

using nlohmann::ordered_json;

std::string line_of(const ordered_json& event) {
  return event.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

}  // namespace

EventPipe::EventPipe() {
  const char* text = std::getenv("CONVOY_EVENTS_FD");
  if (text == nullptr) return;
  char* end = nullptr;
  const long descriptor = std::strtol(text, &end, 10);
  // A descriptor that is not open belongs to a launcher that is not our parent.
  if (end == text || *end != '\0' || ::fcntl(static_cast<int>(descriptor), F_GETFD) < 0) return;
  descriptor_ = static_cast<int>(descriptor);
  // A launcher that is gone must not end the rank by a signal: its watch over the launcher does.
  std::signal(SIGPIPE, SIG_IGN);
}

void EventPipe::progress(std::int64_t step, std::int64_t steps, std::int64_t epoch, double loss, double samples_per_s) {
  send(line_of({{"event", "progress"},
                {"step", step},
                {"steps", steps},
                {"epoch", epoch},
                {"loss", number(loss)},
                {"samples_per_s", number(samples_per_s)}}));
}

void EventPipe::phase(const std::string& name) { send(line_of({{"event", "phase"}, {"name", name}})); }

void EventPipe::note(const std::string& text) { send(line_of({{"event", "note"}, {"text", text}})); }

void EventPipe::error(ErrorCode code, const std::string& message) {
  send(line_of({{"event", "error"}, {"code", std::string(to_string(code))}, {"message", message}}));
}

void EventPipe::summary() { send(line_of({{"event", "summary"}})); }

void EventPipe::send(const std::string& line) {
  if (descriptor_ < 0) return;
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t wrote = ::write(descriptor_, line.data() + done, line.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return;
    done += static_cast<std::size_t>(wrote);
  }
}

}  // namespace convoy::train
