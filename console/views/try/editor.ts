/** An editor for manifests that completes fields and marks problems. It is loaded when it is first shown. */
import { autocompletion, type CompletionContext, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { type Diagnostic, linter, lintGutter } from '@codemirror/lint'
import { EditorView, keymap } from '@codemirror/view'
import { mountYaml } from '../../ui/yaml-view.ts'
import { manifestProblems, suggestionsAt } from './manifest.ts'

function problemsOf({ state }: EditorView): Diagnostic[] {
  const { doc } = state
  return manifestProblems(doc.toString()).map(({ line, column, message }) => {
    const at = doc.line(Math.min(line, doc.lines))
    const from = Math.min(at.from + column - 1, at.to)
    return { from, to: at.to, severity: 'error', message }
  })
}

function complete(context: CompletionContext) {
  const { state, pos, explicit } = context
  const word = context.matchBefore(/[\w./-]+/)
  if (!explicit && word === null) return null
  const suggestions = suggestionsAt(state.doc.toString(), pos)
  if (suggestions.length === 0) return null
  const options = suggestions.map(({ label, detail, info }) => ({ label, detail, info }))
  return { from: word?.from ?? pos, options }
}

interface EditorOptions {
  readonly text: string
  readonly label: string
  onChange(text: string): void
}

/** Shows an editor in an element. Returns a function that removes it. */
export const editManifest = (
  element: HTMLElement,
  { text, label, onChange }: EditorOptions,
): (() => void) =>
  mountYaml(element, text, [
    history(),
    lintGutter(),
    linter(problemsOf),
    autocompletion({ override: [complete] }),
    keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
    EditorView.contentAttributes.of({ 'aria-label': label }),
    EditorView.updateListener.of(({ docChanged, state }) => {
      if (docChanged) onChange(state.doc.toString())
    }),
  ])
