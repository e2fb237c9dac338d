#!/usr/bin/env python3
# Shows that the architecture checks can fail: every rule is broken once, in a tree made for it.
# SPDX-License-Identifier: Apache-2.0

import pathlib
import tempfile
import unittest

import check_classes
import check_english
import check_files
import check_layers
import check_messages

HEAD = "// Says what this file is for.\n// SPDX-License-Identifier: Apache-2.0\n#pragma once\n"
README = "# core/plan: plans\n\n- Purpose: plans.\n- May include: std.\n- Must not know: devices.\n"


def in_tree(check, files):
    """What a check says about a tree of these files: name -> text."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check(root)[0]


class Layers(unittest.TestCase):
    def offences(self, source, include):
        return in_tree(check_layers.check, {source: HEAD + f"#include {include}\n"})

    def test_draws_folders_without_arrows_that_others_imply(self):
        files = {
            "core/tensor/a.h": HEAD + '#include "core/support/a.h"\n',
            "core/graph/a.h": HEAD + '#include "core/support/a.h"\n#include "core/tensor/a.h"\n',
            "resources/guide/contributing.md": "an old picture\n",
        }
        drawn = in_tree(lambda root: (check_layers.picture(root).splitlines(),), files)
        self.assertEqual(["```mermaid", "flowchart TD", "  graph --> tensor", "  tensor --> support", "```"], drawn)
        self.assertEqual(1, len(in_tree(lambda root: (check_layers.picture_offences(root),), files)))

    def assert_refused(self, source, include, words):
        found = self.offences(source, include)
        self.assertEqual(1, len([line for line in found if words in line]), found)
        self.assertIn(f"{source}:4:", found[0])

    def test_refuses_every_forbidden_include(self):
        for source, include, words in (
            ("core/plan/a.h", "<QString>", "core knows no Qt"),
            ("core/plan/a.h", "<QtCore/qstring.h>", "core knows no Qt"),
            ("core/plan/a.h", "<cuda_runtime.h>", "core knows no CUDA"),
            ("core/plan/a.cpp", '"kernels/cpu/cpu_backend.h"', "core knows no kernels"),
            ("core/plan/a.cpp", '"ui/window/main_window.h"', "core knows no kernels, ui"),
            ("core/plan/a.cpp", '"app/backends.h"', "core knows no kernels, ui, app"),
            ("core/plan/a.cpp", "<dnnl.hpp>", "core knows no kernel library"),
            ("core/plan/a.cpp", "<oneapi/dnnl/dnnl.hpp>", "core knows no kernel library"),
            ("core/plan/a.cpp", "<hwy/highway.h>", "core knows no kernel library"),
            ("core/plan/a.cpp", "<CLI/CLI.hpp>", "core knows no command line"),
            ("kernels/cpu/a.cpp", "<QWidget>", "kernels know no Qt"),
            ("kernels/cpu/a.cpp", '"ui/window/main_window.h"', "kernels know no ui"),
            ("kernels/cpu/a.cpp", '"app/backends.h"', "kernels know no ui, app"),
            ("kernels/cpu/a.cpp", "<cuda_bf16.h>", "the CPU kernels know no CUDA"),
            ("kernels/cpu/a.cpp", '"kernels/cuda/module.h"', "the CPU kernels know no CUDA"),
            ("kernels/cuda/a.cu", '"kernels/cpu/cpu_backend.h"', "the CUDA kernels know no CPU kernels"),
            ("kernels/common/a.h", '"kernels/cpu/cpu_backend.h"', "what all backends share knows none of them"),
            ("kernels/common/a.h", '"kernels/cuda/module.h"', "what all backends share knows none of them"),
            ("kernels/common/a.h", "<cuda_runtime.h>", "what all backends share knows none of them"),
            ("kernels/common/a.cpp", "<omp.h>", "what all backends share knows none of them"),
            ("kernels/cuda/device/a.cuh", '"core/tensor/dtype.h"', "device headers include only"),
            ("kernels/cuda/device/a.cuh", '"kernels/cuda/module.h"', "device headers include only"),
            ("ui/canvas/a.cpp", '"kernels/cpu/cpu_backend.h"', "ui knows no kernels"),
            ("ui/canvas/a.cpp", '"app/backends.h"', "ui knows no kernels, app"),
            ("ui/canvas/a.cpp", "<cuda_runtime.h>", "ui knows no device library"),
            ("ui/timings/a.cpp", '"ui/window/main_window.h"', "ui/timings stands below ui/window"),
            ("ui/timings/a.cpp", '"ui/misc/a.h"', "ui/misc has no place in the order of ui"),
            ("app/cli/run.cpp", "<QCoreApplication>", "fuseline links no Qt"),
            ("app/cli/run.cpp", '"ui/session/session.h"', "fuseline links no Qt"),
            ("core/export/a.cpp", "<graphviz/gvc.h>", "core knows no Graphviz"),
            ("ui/canvas/a.cpp", "<graphviz/gvc.h>", "only core/export/graphviz knows Graphviz"),
            ("app/backends.cpp", "<cuda_runtime.h>", "neither Qt nor CUDA"),
            ("app/designer/main.cpp", '"tests/support/builders.h"', "no program includes tests"),
            ("core/plan/a.cpp", '"plan.h"', "written from the root"),
            ("core/plan/a.cpp", '"../ops/catalog.h"', "written from the root"),
        ):
            with self.subTest(source=source, include=include):
                self.assert_refused(source, include, words)

    def test_refuses_every_step_up_within_core(self):
        order = check_layers.CORE_ORDER
        for low, here in enumerate(order):
            for there in order[low + 1:]:
                with self.subTest(here=here, there=there):
                    self.assert_refused(f"core/{here}/a.h", f'"core/{there}/b.h"', f"stands below core/{there}")

    def test_refuses_a_folder_without_a_place_in_the_order(self):
        self.assert_refused("core/plan/a.h", '"core/helpers/b.h"', "core/helpers has no place")

    def test_accepts_what_the_rule_allows(self):
        for source, include in (
            ("core/plan/a.h", '"core/fusion/fuser.h"'),
            ("core/plan/a.h", '"core/plan/plan.h"'),
            ("core/fusion/rules/a.cpp", '"core/fusion/rule.h"'),
            ("core/plan/a.h", "<vector>"),
            ("core/export/graphviz/a.cpp", "<graphviz/gvc.h>"),
            ("core/plan/a.h", "<fmt/format.h>"),
            ("kernels/cpu/a.cpp", "<oneapi/dnnl/dnnl.hpp>"),
            ("kernels/cuda/a.cpp", "<cuda_runtime_api.h>"),
            ("kernels/common/a.h", '"core/runtime/backend.h"'),
            ("kernels/cpu/a.cpp", '"kernels/common/norm_step.h"'),
            ("kernels/cuda/a.cpp", '"kernels/common/norm_step.h"'),
            ("kernels/cuda/device/a.cuh", '"core/numerics/bf16.h"'),
            ("ui/canvas/a.cpp", "<QGraphicsScene>"),
            ("app/designer/main.cpp", '"ui/window/main_window.h"'),
            ("app/backends.cpp", '"kernels/cuda/module.h"'),
        ):
            with self.subTest(source=source, include=include):
                self.assertEqual([], self.offences(source, include))

    def test_looks_into_conditional_and_indented_includes(self):
        text = HEAD + "#if defined(X)\n  #  include <QString>\n#endif\n"
        self.assertEqual(1, len(in_tree(check_layers.check, {"core/plan/a.h": text})))

    def test_ignores_includes_in_comments(self):
        self.assertEqual([], in_tree(check_layers.check, {"core/plan/a.h": HEAD + "// #include <QString>\n"}))


class Files(unittest.TestCase):
    def offences(self, name, text):
        readmes = {f"{folder}/README.md": README for folder in ("core/plan", "resources", "resources/cmake", "tests")}
        return self.check({name: text} | {path: readme for path, readme in readmes.items() if name.startswith(path.split("/")[0])})

    def check(self, files, exceptions=None):
        return in_tree(lambda root: check_files.check(root, exceptions or {}), files)

    def test_accepts_good_heads(self):
        script = HEAD.replace("//", "#").replace("#pragma once\n", "")
        for name, text in (
            ("core/plan/a.h", HEAD),
            ("tests/run", "#!/usr/bin/env bash\n" + script),
            ("resources/cmake/A.cmake", script),
            ("core/plan/a-inl.h", HEAD.replace("#pragma once", "#if defined(A) == defined(HWY_TARGET_TOGGLE)")),
        ):
            with self.subTest(name=name):
                self.assertEqual([], self.offences(name, text))

    def test_refuses_bad_heads(self):
        first, spdx, once = HEAD.splitlines(keepends=True)
        for text, words in (
            ("", "first line"),
            (spdx + once, "first line"),
            ("#pragma once\n" + first + spdx, "first line"),
            (first + once, "no line"),
            (first + spdx.replace("Apache-2.0", "MIT") + once, "no line"),
            (first + once + spdx, "no line"),
            (first + spdx, "without #pragma once"),
            (HEAD + "  rc::check(\"words\", [] {\n", "cannot fail"),
        ):
            with self.subTest(text=text):
                found = self.offences("core/plan/a.h", text)
                self.assertEqual(1, len(found), found)
                self.assertIn(words, found[0])

    def test_refuses_a_folder_without_a_readme(self):
        for folder in ("app", "core/plan", "kernels/cpu", "ui/timings/charts"):
            self.assertEqual([f"{folder}: has no README.md"], self.check({f"{folder}/a.h": HEAD}))
        self.assertEqual(["tests/bench: has no README.md"], self.check({"tests/README.md": README, "tests/bench/a.h": HEAD}))
        self.assertEqual([], self.check({"resources/README.md": README, "resources/guide/a.txt": ""}))

    def test_refuses_a_reference_to_a_file_that_is_missing(self):
        readme = {"core/plan/README.md": README}
        for name, text in (("core/plan/a.h", HEAD + "/// As in notes.md 2.1.\n"), ("CHANGES.md", "See `notes.md`.\n")):
            found = self.check(readme | {name: text})
            self.assertEqual(1, len(found), found)
            self.assertIn("names notes.md", found[0])
            self.assertEqual([], self.check(readme | {name: text, "resources/notes.md": "Notes.\n", "resources/README.md": README}))
        self.assertEqual([], self.check(readme | {"core/plan/a.h": HEAD + "/// ONNX, docs/Operators.md.\n"}))

    def test_refuses_a_readme_of_another_form(self):
        for text, words in (
            (README + "- More.\n" * 4, "9 lines"),
            (README.replace("\n\n", "\n\n\n"), "- Must not know: "),
            (README.replace("- Purpose: ", "- Purpose:"), "- Purpose: "),
            (README.replace("Must not know", "Knows"), "- Must not know: "),
        ):
            with self.subTest(text=text):
                found = self.check({"core/plan/README.md": text})
                self.assertEqual(1, len(found), found)
                self.assertIn(words, found[0])

    def sources(self, number, folder="core/plan"):
        return {f"{folder}/README.md": README} | {f"{folder}/a{index}.h": HEAD for index in range(number)}

    def test_refuses_a_folder_with_too_many_sources(self):
        self.assertEqual([], self.check(self.sources(60)))
        self.assertEqual(["ui/a: has 61 sources, expected 60 at most: give a part of them a folder"],
                         self.check(self.sources(61, "ui/a")))
        self.assertEqual([], self.check(self.sources(60) | self.sources(60, "core/plan/more")))

    def test_does_not_count_entries_of_catalogs(self):
        lists = HEAD.replace("//", "#").replace("#pragma once\n", "")
        entries = {f"core/plan/b{index}.cpp": HEAD for index in range(9)}
        names = "\n  ".join(f"plan/b{index}" for index in range(9))
        listed = {"core/CMakeLists.txt": f"{lists}add_catalog(core plans\n  {names})\n", "core/README.md": README}
        self.assertEqual(1, len(self.check(self.sources(60) | entries)))
        self.assertEqual([], self.check(self.sources(60) | entries | listed))

    def test_lets_exceptions_of_folders_shrink_only(self):
        for number, words in (
            (71, "has 71 sources, expected 70 at most"),
            (69, "has no 70 sources any more: write 69"),
            (60, "take the folder out"),
        ):
            with self.subTest(number=number):
                found = self.check(self.sources(number), {"core/plan": 70})
                self.assertEqual(1, len(found), found)
                self.assertIn(words, found[0])
        self.assertEqual([], self.check(self.sources(70), {"core/plan": 70}))
        self.assertIn("take the folder out", self.check(self.sources(1), {"core/gone": 70})[0])


class Classes(unittest.TestCase):
    def count(self, files):
        """Class -> (methods, lines) of a tree of these files."""
        found = []
        in_tree(lambda root: (found.extend(check_classes.count(root)), 0), files)
        return {one.name: (one.methods, one.lines) for one in found}

    def assert_counts(self, methods, lines, body, source="", name="a::Plan"):
        files = {"core/plan/a.h": f"namespace a {{\nclass Plan : public Base<int> {{\n{body}\n}};\n}}\n", "core/plan/a.cpp": source}
        self.assertEqual((methods, lines), self.count(files)[name], (body, source))

    def test_counts_what_a_class_declares(self):
        for methods, body in (
            (1, "  void run();"),
            (1, "  explicit Plan(int size) : m_size{size}, m_rest(size) {}"),
            (2, " public:\n  void run();\n Q_SIGNALS:\n  void changed(int size);"),
            (2, "  Q_OBJECT\n  Q_PROPERTY(int size)\n public:\n  void run(int);\n  void run();"),
            (1, "  [[nodiscard]] bool operator<(const Plan& other) const;"),
            (1, "  bool operator()(int size) const { return size > 1; }"),
            (1, "  std::map<int, std::function<void(int)>> sizes(int most = 3) const;"),
            (1, "  auto size() const -> int;"),
            (1, "  template <typename T, int N = 2>\n  void put(T value);"),
            (0, "  Plan(const Plan&) = delete;\n  ~Plan() = default;"),
            (0, "  int m_size = sizeof(int);\n  int m_more{f(2)};\n  std::function<void()> m_run;"),
            (0, "  alignas(16) int m_sizes[2] = {};\n  void (*m_call)(int) = nullptr;\n  void (Plan::*m_run)();"),
            (0, "  using Run = std::function<void()>;\n  friend bool same(Plan);\n  enum class Kind { A = f(1) };"),
            (0, "  // void run();\n  /* void run(); */"),
            (0, '  const char* m_text = "void run();";'),
        ):
            with self.subTest(body=body):
                self.assertEqual(methods, self.count({"core/plan/a.h": f"class Plan {{\n{body}\n}};\n"})["Plan"][0])

    def test_counts_the_lines_of_definitions_wherever_they_stand(self):
        body = "  void run();\n  int size() const { return 1; }"
        for lines, source in (
            (1, ""),
            (2, "void a::Plan::run() {}"),
            (2, "namespace a { void Plan::run() {} }"),
            (4, "namespace a {\nvoid Plan::run() {\n\n  // Says why.\n  if (true) { f(); }\n}\n}"),
            (5, "namespace a {\nPlan::Plan(int x)\n    : m_x{x},\n      m_y(x) {\n}\n}"),
            (1, "namespace a { void run() { f(); } }\nnamespace { void Plan::run() {} }"),
            (2, 'namespace a { constexpr auto kText = R"(}}{")"; void Plan::run() {} }'),
        ):
            with self.subTest(source=source):
                self.assert_counts(2, lines, body, source)

    def test_counts_over_all_files(self):
        files = {"ui/a/a.h": "namespace a { class Plan { void run(); void stop(); }; }"}
        files |= {f"ui/{name}.cpp": f"namespace a {{\nvoid Plan::{name[-1]}() {{\n}}\n}}\n" for name in ("a/b", "a/c", "d/e")}
        self.assertEqual({"a::Plan": (2, 6)}, self.count(files))

    def test_keeps_classes_of_one_name_apart(self):
        text = "namespace {{ class Plan {{ void run(); }}; void Plan::run() {{{}}} }}"
        found = self.count({"ui/a/a.cpp": text.format("\n"), "ui/a/b.cpp": text.format("\n\n\n1;\n")})
        self.assertEqual({"(ui/a/a.cpp)::Plan": (1, 2), "(ui/a/b.cpp)::Plan": (1, 3)}, found)
        nested = "namespace a { class Plan { struct Row { int f() { return 1; } }; void run() {} }; }"
        self.assertEqual({"a::Plan": (1, 1), "a::Plan::Row": (1, 1)}, self.count({"ui/a/a.h": nested}))

    def offences(self, num_methods, num_lines):
        methods = "".join(f"  void run{number}();\n" for number in range(num_methods - 1))
        long = "  void run() {\n" + "    f();\n" * (num_lines - 2) + "  }\n"
        files = {"ui/a/a.h": "namespace fuseline::ui {\nclass Plan {\n" + methods + long + "};\n}\n"}
        return in_tree(lambda root: check_classes.check(root), files)

    def test_refuses_what_is_over_the_limits(self):
        self.assertEqual([], self.offences(40, 350))
        self.assertIn("ui/a/a.h: ui::Plan has 41 methods, expected 40 at most", self.offences(41, 3)[0])
        self.assertIn("has 351 lines, expected 350 at most", self.offences(1, 351)[0])


class English(unittest.TestCase):
    def lines(self, name, text, allowances=None):
        return in_tree(lambda root: check_english.check(root, allowances or {}), {name: text})

    def test_refuses_clauses_in_place_of_nouns_and_words_of_our_own(self):
        for text in ("/// What it reads.\n", "/// The inputs. Of all ops.\n", "// A comment that goes\n// on. What of it is lost.\n",
                     'auto a = "What the file says is lost.";\n', 'auto a = "It is measured "\n         "once more.";\n',
                     "// The roof of the kernel.\n", 'field("low", &Row::low, "Of the interval.");\n'):
            self.assertEqual(2, len(self.lines("core/plan/a.h", text)), text)
        self.assertEqual(2, len(self.lines("resources/guide/a.md", "What it reads\nis a tensor.\n")))

    def test_reads_questions_and_other_words(self):
        for text in ('auto a = "What changed?";\n', "/// Output of the op. Whatever it is.\n", "// Rooflines are drawn.\n",
                     'R"(["Of"])";\n', "int What = 1;\n"):
            self.assertEqual([], self.lines("core/plan/a.h", text), text)

    def test_an_allowance_may_only_shrink(self):
        text = "/// What it reads.\n"
        self.assertEqual([], self.lines("core/plan/a.h", text, {"core/plan": 1}))
        self.assertIn("lower its allowance", self.lines("core/plan/a.h", text, {"core/plan": 2})[0])


class Messages(unittest.TestCase):
    def offences(self, text):
        return in_tree(check_messages.check, {"core/plan/a.cpp": text})

    def test_refuses_long_messages_wherever_they_are_given(self):
        long = '"{}: ' + "a word " * 15 + '"\n    "' + "a word " * 15 + 'at its end."'
        for text in ("return Error{fmt::format(%s, name)};", "return Verdict::no(%s);", "notes.push_back(fmt::format(%s, a));",
                     "return %s;", "diagnostics.push_back({.code = a, .message = fmt::format(%s, a)});"):
            self.assertEqual(1, len(self.offences(text % long)), text)

    def test_counts_placeholders_and_leaves_out_lists_after_a_colon(self):
        self.assertEqual(1, len(self.offences('return Error{"' + "{} is {}, " * 9 + "words " * 5 + '"};')))
        self.assertEqual([], self.offences('return Error{"' + "a word " * 26 + 'has: {}."};'))
        self.assertEqual([], self.offences('std::string text = "' + "a word " * 50 + '";'))

    def test_refuses_texts_of_the_window_with_more_than_six_lines(self):
        for lines, offences in ((6, 0), (7, 1)):
            text = 'box->setToolTip(tr("' + "\\n".join(["a line"] * lines) + '"));'
            self.assertEqual(offences, len(in_tree(check_messages.check, {"ui/timings/a.cpp": text})), lines)


if __name__ == "__main__":
    unittest.main()
