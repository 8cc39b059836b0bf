# Programs that ./dev bench replicas starts.
if(NOT MPI_C_FOUND)
    return()
endif()
add_executable(replica_exchange bench/replica_exchange.c)
target_include_directories(replica_exchange PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(replica_exchange PRIVATE pumice_flags libpumice m)
add_executable(mpi_sums bench/mpi_sums.c)
target_link_libraries(mpi_sums PRIVATE pumice_flags MPI::MPI_C)
