/** Shows YAML in CodeMirror, with folding and search. It is loaded when the first text is shown. */
import { yaml } from '@codemirror/lang-yaml'
import { codeFolding, foldGutter, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState, type Extension } from '@codemirror/state'
import { EditorView, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'

const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.content], color: 'var(--text)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--good)' },
  { tag: tags.comment, color: 'var(--quiet)' },
])

const look = EditorView.theme({
  '&': { backgroundColor: 'transparent', color: 'var(--text)', fontSize: '13px' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--quiet)', border: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)' },
})

/**
 * Shows YAML in an element, with more extensions of the editor. Returns a function that removes it. The editor
 * lives in a shadow root, because it adds style sheets, which the content security policy forbids in the document.
 */
export function mountYaml(element: HTMLElement, doc: string, more: Extension): () => void {
  const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
  const extensions = [
    lineNumbers(),
    codeFolding(),
    foldGutter(),
    yaml(),
    syntaxHighlighting(colors),
    look,
    EditorView.lineWrapping,
    more,
  ]
  const state = EditorState.create({ doc, extensions })
  const view = new EditorView({ root, parent: root, state })
  return () => view.destroy()
}

/** Shows a text that cannot be edited. Returns a function that removes it. */
export const showYaml = (element: HTMLElement, text: string): (() => void) =>
  mountYaml(element, text, [
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ 'aria-label': 'Manifest', 'aria-readonly': 'true' }),
  ])
