# What every plugin of the GPU kernels is built of: the kernels in its toolchain's dialect, and plain C++ around them. Beside these each has a runtime
# (runtime.h).
set(gpu_folder ${CMAKE_CURRENT_LIST_DIR})
set(QUIRE_GPU_KERNELS
  ${gpu_folder}/kernels/attend.cu ${gpu_folder}/kernels/extend.cu ${gpu_folder}/kernels/gdn_decode.cu ${gpu_folder}/kernels/gdn_prefill.cu
  ${gpu_folder}/kernels/gdn_verify.cu ${gpu_folder}/kernels/slots.cu ${gpu_folder}/kernels/tokens.cu)
set(QUIRE_GPU_HOST_SOURCES
  ${gpu_folder}/plan.cpp ${gpu_folder}/site.cpp ${gpu_folder}/step.cpp ${gpu_folder}/table.cpp ${gpu_folder}/views.cpp
  ${PROJECT_SOURCE_DIR}/core/src/call.cpp ${PROJECT_SOURCE_DIR}/core/src/error.cpp)
