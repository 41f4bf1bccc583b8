"""Holds the charts of the bench to the results that they are drawn from."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools/bench/chart"
RESULTS = ROOT / "tools/bench/results/nvidia-h200"
SVG = "{http://www.w3.org/2000/svg}"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))

loader = importlib.machinery.SourceFileLoader("chart", str(SCRIPT))
chart = importlib.util.module_from_spec(importlib.util.spec_from_loader("chart", loader))
loader.exec_module(chart)
import bench_results  # noqa: E402


class Charts(unittest.TestCase):
    def test_a_bar_is_as_long_as_its_ratio(self) -> None:
        rows = [
            bench_results.make_row("fast", {"stof": [[2.0]], "a<b": [[6.0]]}, {}),
            bench_results.make_row("slow", {"stof": [[4.0]], "a": [[2.0]]}, {}),
            bench_results.make_row("alone", {"stof": [[4.0]]}, {}),
            bench_results.make_row("broken", {}, {"stof": "no template"}),
        ]
        root = ElementTree.fromstring(chart.bars({"rows": rows, "gpu": "none"}, "attention"))
        bars = root.findall(f"{SVG}rect")
        self.assertEqual([bar.get("class") for bar in bars], ["won", "lost"])
        self.assertAlmostEqual(float(bars[0].get("width")) / float(bars[1].get("width")), 6, places=1)
        words = [text.text for text in root.findall(f"{SVG}text")]
        for expected in ("3.00  2 µs, a<b 6", "0.50  4 µs, a 2", "4 µs", "failed"):
            self.assertIn(expected, words)

    def test_work_is_counted_by_hand(self) -> None:
        # x [128, 768] times [768, 3072] in, [128, 3072] out, at 2 bytes an element
        case = bench_results.parse_fusion_case("gemm_bias_gelu:128:768")
        self.assertEqual(chart.fusion_work(case), (2 * 128 * 768 * 3072, 2 * (128 * 768 + 768 * 3072 + 128 * 3072)))
        case = bench_results.parse_fusion_case("mlp_res_ln:128:768")
        self.assertEqual(chart.fusion_work(case), (4 * 128 * 768 * 3072, 2 * (3 * 128 * 768 + 2 * 768 * 3072)))
        # 4 queries that see 1, 2, 3 and 4 keys; q and o of 2 heads, k and v of one
        case = bench_results.parse_attention_case("causal:3:2:4:8:kv1")
        self.assertEqual(chart.attention_work(case), (4 * 3 * 2 * 10 * 8, 2 * 3 * (2 * 2 * 4 + 2 * 4) * 8))

    def test_a_roof_bends_where_bandwidth_meets_peak(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            row = bench_results.make_row("gemm_hh:4096:4096", {"stof": [[1000.0]]}, {}, kind="gemm_hh")
            (folder / "fusion.json").write_text(json.dumps({"rows": [row]}))
            profile = {"name": "one", "tensor_tflops": 100, "dram_gbps": 1000, "rates_source": "data sheet"}
            root = ElementTree.fromstring(chart.roofline(folder, profile))
        path = root.find(f"{SVG}path").get("d")
        self.assertEqual(path, "M188 460L444 197.5H700")  # 1 at 1, 100 at 100, of 0.1 … 10,000 and 1 … 1,600
        (point,) = [circle for circle in root.findall(f"{SVG}circle") if circle.find(f"{SVG}title") is not None]
        self.assertEqual(point.find(f"{SVG}title").text, "gemm_hh:4096:4096: 137 TFLOP/s")
        self.assertNotIn("as measured", root.find(f"{SVG}title").text)

    def test_the_charts_of_the_repository_are_of_its_results(self) -> None:
        for results in RESULTS.parent.iterdir():
            with self.subTest(results=results.name), tempfile.TemporaryDirectory() as name:
                for path in results.glob("*.json"):
                    (Path(name) / path.name).write_bytes(path.read_bytes())
                subprocess.run([sys.executable, "-B", SCRIPT, name], check=True)
                drawn = {path.name: path.read_text() for path in Path(name).glob("*.svg")}
                self.assertEqual(drawn, {path.name: path.read_text() for path in results.glob("*.svg")})

    def test_what_is_missing_is_named(self) -> None:
        def complaint(*arguments: str) -> str:
            result = subprocess.run([sys.executable, "-B", SCRIPT, *arguments], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2)
            return result.stderr

        self.assertIn("no profile gtx, there is a10, ", complaint(str(RESULTS), "--profile", "gtx"))
        self.assertIn("no attention.json, fusion.json or models.json in /nowhere", complaint("/nowhere"))


if __name__ == "__main__":
    unittest.main()
