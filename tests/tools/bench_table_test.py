"""Holds the cases, numbers and tables of the bench scripts to values worked out by hand."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "tools/bench"
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))

import bench_results  # noqa: E402
import random_cases  # noqa: E402

EXPLANATION = """\
gpu backend, NVIDIA H200 as sm_90a
2 launches of 2 kernels, workspace 64 bytes
matmul_2, add: 4: matmul/gemm_sm90.jinja, grid 8x1x1, block 384x1x1, cluster 1x1x1, shared 0 + 9 bytes, registers 9, spills 0 bytes
layer_norm_9: norm/layer_norm.jinja, grid 8192x1x1, block 128x1x1, cluster 1x1x1, shared 0 + 0 bytes, registers 64, spills 0 bytes
"""

# arguments of a parser and words of its complaint
WRONG_CASES = [
    (bench_results.parse_attention_case, "causal:1:12:1024", "expected mask:batch:heads:seq:head_dim"),
    (bench_results.parse_attention_case, "causal:1:12:1024:0", "'0' is no positive number"),
    (bench_results.parse_attention_case, "causal:1:12:1024:64:fp8", "'fp8' is none of"),
    (bench_results.parse_attention_case, "causal:1:12:1024:64:kv5", "5 key heads do not divide 12 heads"),
    (bench_results.parse_attention_case, "causal:1:12:1024:64:q", "'' is no positive number"),
    (bench_results.parse_attention_case, "causal:1:12:1024:64:alibi:softcap", "not by alibi and softcap"),
    (bench_results.parse_attention_case, "causal:1:12:1024:64:bytes:columns", "not in bytes and columns"),
    (bench_results.parse_attention_case, "causal:1:12:1024:64:offsets", "offsets are those of doc_causal, documents"),
    (bench_results.parse_fusion_case, "gemm:128:768", "no group 'gemm'"),
    (bench_results.parse_fusion_case, "gemm_hh:128", "expected group:T:h"),
    (bench_results.parse_fusion_case, "gemm_hh:128:768:kv4", "expected group:T:h"),
    (bench_results.parse_model_case, "bert:1:128", "no model 'bert'"),
    (bench_results.parse_model_case, "bert-base:1", "expected model:batch:seq"),
    (bench_results.parse_model_case, "vit-base:1:1", "an image has at least 2 tokens"),
]


class Cases(unittest.TestCase):
    def test_an_attention_case_is_read(self) -> None:
        case = bench_results.parse_attention_case("causal:2:12:1024:64")
        expected = {"mask": "causal", "score": "", "form": "", "dtype": "float16", "batch": 2, "heads": 12, "kv_heads": 12, "q_len": 1024, "kv_len": 1024, "head_dim": 64}
        self.assertEqual((case.shape, case.kind), (expected, "causal and full"))
        case = bench_results.parse_attention_case("window:1:32:4096:128:bf16:kv4:q1")
        self.assertEqual((case.dtype, case.kv_heads, case.q_len, case.kv_len, case.kind), ("bfloat16", 4, 1, 4096, "other shapes"))
        case = bench_results.parse_attention_case("full:1:12:1024:64:bias")
        self.assertEqual((case.score, case.kind), ("bias", "score modifiers"))
        case = bench_results.parse_attention_case("documents:1:12:1024:64:offsets")
        self.assertEqual((case.form, case.kind), ("offsets", "masks that arrive"))

    def test_a_fusion_case_is_read(self) -> None:
        case = bench_results.parse_fusion_case("mlp_res_ln:128:768:bf16")
        self.assertEqual((case.group, case.tokens, case.hidden, case.dtype), ("mlp_res_ln", 128, 768, "bfloat16"))

    def test_a_model_case_is_read(self) -> None:
        case = bench_results.parse_model_case("llama-7b-4layers:8:512:bf16")
        self.assertEqual((case.batch, case.tokens, case.layers, case.is_causal, case.mask, case.dtype), (8, 512, 4, True, "sliding", "bfloat16"))
        cases = [bench_results.parse_model_case(f"vit-base:1:{seq}") for seq in (128, 512, 2048)]
        self.assertEqual([(case.tokens, case.image_size, case.mask) for case in cases], [(101, 160, None), (485, 352, None), (2026, 720, None)])

    def test_a_wrong_case_is_named(self) -> None:
        for parse, text, words in WRONG_CASES:
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, f"case {text}: .*{words}"):
                parse(text)

    def test_random_cases_are_those_of_their_seed(self) -> None:
        for kind, masks in random_cases.KINDS.items():
            texts = random_cases.attention_cases(300, 7, kind)
            self.assertEqual((len(set(texts)), texts), (300, random_cases.attention_cases(300, 7, kind)))
            self.assertNotEqual(texts, random_cases.attention_cases(300, 8, kind))
            cases = [bench_results.parse_attention_case(text) for text in texts]
            self.assertEqual({":".join(filter(None, (case.mask, case.form))) for case in cases}, set(masks))
            self.assertEqual({case.score for case in cases}, set(bench_results.SCORES) if kind == "scores" else {""})
            for case in cases:
                self.assertLessEqual(case.q_len, case.kv_len)
                self.assertLessEqual(4 * case.cost, 2 * random_cases.MOST_FLOPS)

    def test_given_cases_keep_their_order_and_defaults_are_cheapest_first(self) -> None:
        given = ["causal:1:12:4096:64", "causal:1:12:128:64", "causal:1:12:4096:64"]
        cases = bench_results.parse_cases(given, bench_results.parse_attention_case, [])
        self.assertEqual([case.text for case in cases], given[:2])
        cases = bench_results.parse_cases([], bench_results.parse_attention_case, bench_results.ATTENTION_CASES)
        self.assertEqual((len(cases), cases[0].kv_len, cases[-1].kv_len), (80, 1024, 16384))
        self.assertEqual(len({case.text for case in cases}), 80)
        cases = bench_results.parse_cases([], bench_results.parse_fusion_case, bench_results.FUSION_CASES)
        self.assertEqual((len(cases), cases[-1].text), (42, "gated:32768:4096"))
        cases = bench_results.parse_cases([], bench_results.parse_model_case, bench_results.MODEL_CASES)
        self.assertEqual((len(cases), cases[0].text, cases[-1].text), (18, "bert-base:1:128", "llama-7b-4layers:16:2048"))


class Rows(unittest.TestCase):
    def test_the_ratio_is_the_median_of_rounds(self) -> None:
        # Clocks drop by half in the second round; medians over all replays would say otherwise.
        rounds = {"stof": [[10, 11, 10], [20, 20, 30], [10, 10, 10]], "a": [[20, 20, 90], [40, 40, 40], [30, 30, 30]], "b": [[99] * 3] * 3}
        row = bench_results.make_row("x", rounds, {"c": "no kernel"}, error=2e-4)
        self.assertEqual(row["peers"], {"a": 30, "b": 99, "c": "no kernel"})
        self.assertEqual((row["stof_us"], row["best_peer"], row["best_peer_us"], row["ratio"]), (10, "a", 30, 2.0))

    def test_a_failure_is_text_and_gives_no_ratio(self) -> None:
        row = bench_results.make_row("x", {"a": [[5.0]]}, {"stof": "no template"}, kind="sparse")
        self.assertEqual((row["stof_us"], row["failure"], row["best_peer_us"]), (None, "no template", 5.0))
        self.assertNotIn("ratio", row)
        row = bench_results.make_row("x", {"stof": [[5.0]]}, {"a": "too large"})
        self.assertEqual((row["stof_us"], row.get("best_peer")), (5.0, None))

    def test_what_is_not_tuned_is_no_peer(self) -> None:
        rounds = {"stof": [[2.0]], "untuned": [[3.0]], "a": [[6.0]]}
        row = bench_results.make_row("x", rounds, {}, kind="sparse")
        self.assertEqual((row["stof_us"], row["untuned_us"], row["peers"], row["ratio"]), (2, 3, {"a": 6}, 3.0))
        text = bench_results.markdown({"command": "attention --tune", "rows": [row]}, {})
        self.assertIn("| case | STOF µs | best peer µs | which | ratio | error | untuned µs | kernel |", text)
        del rounds["untuned"]
        row = bench_results.make_row("x", rounds, {"untuned": "no template"}, kind="sparse")
        self.assertEqual((row["failure"], row["peers"]), ("no template", {"a": 6}))

    def test_models_are_in_milliseconds(self) -> None:
        row = bench_results.make_row("x", {"stof": [[1500.0]], "dense": [[3000.0]]}, {}, "ms", launches=7)
        self.assertEqual((row["stof_ms"], row["best_peer_ms"], row["peers"], row["ratio"]), (1.5, 3.0, {"dense": 3.0}, 2.0))
        text = bench_results.markdown({"command": "models", "rows": [row | {"kind": "gpt2"}]}, {}, "ms")
        self.assertIn("| case | STOF ms | best peer ms | which | ratio | error | launches |", text)
        self.assertIn("| x | 1.500 | 3.000 | dense | 2.000 | – | 7 |", text)

    def test_work_is_that_of_the_slowest_part(self) -> None:
        gpu = {"dram_gbps": 1000, "tensor_tflops": 100, "exp2_gops": 1000, "l2_gbps": 4000}
        case = bench_results.parse_attention_case("causal:1:1:128:64")
        # 64 KiB of memory take 0.0655 us, 3 tiles of 1,048,576 operations 0.0315, 8256 exponentials 0.0083, 80 KiB of L2 0.0205.
        self.assertEqual(bench_results.masked_work(case, 8256, 3, gpu), {"flops": 2113536, "floor_us": 3.07})
        shared = bench_results.parse_attention_case("full:2:8:4096:128:kv2:q1")
        self.assertEqual(bench_results.masked_work(shared, 4096, 64, gpu)["floor_us"], 11.4)
        # Four heads of a query each read 8.4 MB from L2 at once.
        self.assertEqual(bench_results.masked_work(shared, 4096, 64, gpu | {"l2_gbps": 500})["floor_us"], 19.79)
        row = bench_results.make_row("x", {"stof": [[4.0]]}, {}, flops=8e8, floor_us=3.0, kind="sparse")
        self.assertEqual((row["tflops"], row["of_floor"]), (200.0, 0.75))
        text = bench_results.markdown({"command": "attention", "rows": [row, {"case": "y", "stof_us": 1.0, "peers": {}}]}, {})
        self.assertIn("| case | STOF µs | best peer µs | which | ratio | error | TFLOP/s | share of the floor | kernel |", text)
        self.assertIn("| x | 4.00 | – | – | – | – | 200 | 75% | – |", text)
        self.assertIn("| y | 1.00 | – | – | – | – | – | – | – |", text)

    def test_a_gpu_is_found_by_its_name(self) -> None:
        self.assertEqual(bench_results.gpu_profile("NVIDIA H200")["target"], "sm_90a")
        self.assertIsNone(bench_results.gpu_profile("abacus"))

    def test_geometric_means_are_over_their_kinds(self) -> None:
        rows = [{"kind": "sparse", "ratio": 2.0}, {"kind": "sparse", "ratio": 8.0}, {"kind": "sparse"}, {"kind": "full", "ratio": 0.5}]
        kinds = {"sparse": ["sparse"], "all": ["sparse", "full"], "none": ["dense"]}
        means = [(name, round(mean, 9), least, count) for name, mean, least, count in bench_results.geometric_means(rows, kinds)]
        self.assertEqual(means, [("sparse", 4.0, 2.0, 2), ("all", 2.0, 0.5, 3)])

    def test_kernels_are_named_by_their_templates(self) -> None:
        self.assertEqual(bench_results.kernel_names(EXPLANATION), "gemm_sm90 + layer_norm")

    def test_errors_are_one_line(self) -> None:
        self.assertEqual(bench_results.one_line(ValueError("a\n  b | c")), "a b / c")
        self.assertEqual(bench_results.one_line(MemoryError()), "MemoryError")
        self.assertEqual(len(bench_results.one_line("a" * 999)), 300)


TABLE = """\
`attention --rounds 1`

gpu none, clocks_mhz {'sm': 1980}

| case | STOF µs | best peer µs | which | ratio | error | kernel |
| --- | ---: | ---: | --- | ---: | ---: | --- |
| a | 2.00 | 6.00 | flex:default | 3.000 | 2.5e-04 | row_wise |
| b | – | 7.00 | cudnn | – | – | – |

| best peer / STOF | geometric mean | least | cases |
| --- | ---: | ---: | ---: |
| sparse | 3.000 | 3.000 | 1 |

Failures:

- b, stof: no template
- a, cudnn: no kernel

Left out, for the time was up: c, d.
"""


class Files(unittest.TestCase):
    def test_each_row_is_on_disk_and_a_later_run_adds_to_them(self) -> None:
        kinds = {"sparse": ["sparse"]}
        with tempfile.TemporaryDirectory() as folder:
            results = bench_results.Results(Path(folder, "new"), "attention", kinds)
            results.data |= {"command": "attention --rounds 1", "date": ""}
            results.describe(gpu="none", clocks_mhz={"sm": 1980})
            row = bench_results.make_row("a", {"stof": [[2.0]], "flex:default": [[6.0]]}, {"cudnn": "no kernel"}, kind="sparse", error=2.5e-4, kernel="row_wise")
            results.add({**row, "error": 1.0})
            results.add(row)  # in its place
            self.assertEqual(json.loads(Path(folder, "new/attention.json").read_text())["rows"], [row])
            results = bench_results.Results(Path(folder, "new"), "attention", kinds, continues=True)
            results.leave_out(["b"])
            results.add(bench_results.make_row("b", {"cudnn": [[7.0]]}, {"stof": "no template"}, kind="sparse"))
            self.assertEqual(results.data["left_out"], [])
            results.leave_out(["c", "d"])
            self.assertEqual(Path(folder, "new/attention.md").read_text(), TABLE)
            self.assertEqual(sorted(file.name for file in Path(folder, "new").iterdir()), ["attention.json", "attention.md"])

    def test_rows_of_another_day_say_so(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            results = bench_results.Results(Path(folder), "attention", {})
            row = bench_results.make_row("a", {"stof": [[2.0]]}, {}, kind="sparse", kernel="row_wise")
            results.add(row)
            self.assertNotIn("Measured on", Path(folder, "attention.md").read_text())
            results.data["date"] = "2026-01-02 03:04:05"
            results.add({**row, "case": "b"})
            table = Path(folder, "attention.md").read_text()
            self.assertRegex(table, r"\nMeasured on 20\d\d-\d\d-\d\d: b\.\n")

    def test_there_have_to_be_results_to_add_to(self) -> None:
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(SystemExit, "no results to add to: .*attention.json"):
            bench_results.Results(Path(folder), "attention", {}, continues=True)

    def test_the_scripts_say_how_they_are_used(self) -> None:
        for script in ("attention", "fusion", "models"):
            with self.subTest(script=script):
                command = [sys.executable, "-B", FOLDER / script]
                result = subprocess.run([*command, "--help"], capture_output=True, text=True)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("--budget-seconds", result.stdout)
                result = subprocess.run([*command, "--library", "/nowhere"], capture_output=True, text=True)
                self.assertEqual(result.returncode, 2)
                self.assertIn("no library /nowhere", result.stderr)


if __name__ == "__main__":
    unittest.main()
