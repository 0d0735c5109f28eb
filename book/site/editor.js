// CodeMirror 6 with what a Python program of 40 lines needs. Tab leaves the editor, as a keyboard user expects.

import { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

/** Calls `act` and answers as an editor's handler does: is the event dealt with? */
const after = (act, isDone) => () => {
  act();
  return isDone;
};

/** {text(), set(text), focus()} of an editor in `parent`. */
export function makeEditor(parent, text, { label, describedBy, onChange, onRun, onFocus }) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([{ key: "Mod-Enter", run: after(onRun, true) }]),
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("    "),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ activateOnTyping: false }),
        highlightActiveLine(),
        python(),
        syntaxHighlighting(classHighlighter),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": describedBy, spellcheck: "false" }),
        EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
        EditorView.domEventHandlers({ focus: after(onFocus, false) }),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    set: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    focus: () => view.focus(),
  };
}
