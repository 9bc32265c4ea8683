import type { Signal } from '@preact/signals'

interface TextAreaProps {
  readonly id: string
  readonly rows: number
  readonly placeholder?: string
  /** Has the text, also while the view is not shown. */
  readonly text: Signal<string>
}

/** A text of several lines that the user edits. */
export const TextArea = ({ text, ...attributes }: TextAreaProps) => (
  <textarea
    {...attributes}
    spellcheck={false}
    value={text.value}
    onInput={({ currentTarget }) => {
      text.value = currentTarget.value
    }}
  />
)
