// Carries the precompiled libtorch header; see Dependencies.cmake.
