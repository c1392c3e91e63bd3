#include "convoy/params/replica_team.h"

namespace convoy::params {
namespace {

thread_local ReplicaTeam* team_of_thread = nullptr;

}  // namespace

ReplicaTeam* ReplicaTeam::current() { return team_of_thread; }

TeamScope::TeamScope(ReplicaTeam& team) : outer_(team_of_thread) { team_of_thread = &team; }

TeamScope::~TeamScope() { team_of_thread = outer_; }

}  // namespace convoy::params
