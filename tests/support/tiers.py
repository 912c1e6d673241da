"""Which tests are slow, and which are about threads: paths and names below `tests`."""

#: What `make test-fast` leaves out, by folder, file or test.
SLOW = (
    # Whole experiments, and samples of what is tried by the thousand.
    "experiments",
    "benchmarks",
    "hostile",
    "paper",
    "verify",
    "test_documents.py",
    # Files of megabytes, where there are any.
    "datasets/sensor_logs/test_logs.py",
    "datasets/test_public.py",
    # Threads, processes and clocks.
    "files/test_files.py::test_a_new_file_has_the_mode_of_any_new_file",
    "files/test_files.py::test_readers_never_see_a_part",
    "files/test_files.py::test_repeated_keys_are_found_in_linear_time",
    "files/test_files.py::test_standard_output_keeps_what_is_there",
    "objectives/chain/test_objective.py::test_any_number_of_threads_gives_the_same_steps_and_the_"
    "same_number_the_same_bits",
    "objectives/chain/test_objective.py::test_runs_in_several_threads_are_separate_runs",
    "solvers/test_threads.py",
    "test_cli.py",
    "test_concurrency.py",
    "test_form.py::test_a_linear_model_loads_no_other_family",
    "validation/test_containers.py::test_a_wrong_length_does_not_take_the_process_down",
    # JAX compiles every function anew; the contract of functions has fast tests of its own.
    "compat",
    "objectives/function/test_jax.py",
    "objectives/function/test_trace.py",
    # Hundreds of fits, or large ones.
    "certificates/test_certificate.py::test_what_select_gives_is_confirmed",
    "core/test_units.py::test_classes_chains_and_functions",
    "datasets/test_home.py",
    "designs/test_standardized.py::test_every_sum_is_that_of_a_copy",
    "estimators/test_crf.py::test_a_home_is_labelled_from_few_sensors",
    "estimators/test_crf.py::test_budgets_and_prices",
    "estimators/test_crf.py::test_scikit_learn_checks",
    "estimators/test_estimators.py::test_memory_is_x_and_one_copy",
    "estimators/test_estimators.py::test_scikit_learn_checks",
    "estimators/test_multiclass.py::test_scikit_learn_checks",
    "objectives/chain/test_kernels.py::test_extreme_weights_on_300_000_steps",
    "objectives/chain/test_objective.py::test_with_many_labels_fits_end_in_the_same_place",
    "objectives/linear/test_fast_paths.py::test_copies_of_columns_far_from_zero_still_tie",
    "objectives/linear/test_fast_paths.py::test_mixed_precision_is_double_precision",
    "objectives/linear/test_fast_paths.py::test_single_precision_input_is_its_conversion_to_double",
    "objectives/linear/test_hard_data.py::"
    "test_columns_that_are_almost_copies_do_not_keep_a_run_going",
    "objectives/linear/test_hard_data.py::test_offsets_that_scatter_widely_still_give_the_optimum",
    "objectives/linear/test_precision.py::test_single_precision_before_and_after_does_no_harm",
    "objectives/linear/test_screening.py::test_to_the_end_of_the_road",
    "objectives/softmax/test_objective.py::test_contract",
    "objectives/test_contract.py::test_sparse_columns_that_stay_sparse",
    "selection/test_against_reference.py::"
    "test_long_runs_on_correlated_columns_where_features_do_leave",
    "selection/test_permutation.py::test_noise_is_rarely_taken_for_a_feature",
    "selection/test_refine.py::test_any_number_of_threads_gives_the_same_features",
    "selection/test_refine.py::test_the_same_call_gives_the_same_bits",
)

#: Whoever asks for these starts a new interpreter.
SLOW_FIXTURES = {"without_extras"}

#: These need a BLAS with more threads than one.
ABOUT_THREADS = ("test_concurrency.py", "solvers/test_threads.py")


def is_under(path, names):
    """Whether a test, such as `core/test_warn.py::test_it`, is one of those named, or in them."""
    return any(path == name or path.startswith((f"{name}/", f"{name}::")) for name in names)
