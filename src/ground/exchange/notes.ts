/** Notes of steps about a request, for its decision record. They are never sent to clients. */
import type { Exchange } from './exchange.ts'

/** A finding of a step, such as the matches of a guard. It contains no part of a body or a credential. */
interface DecisionNote {
  /** Name of the step, such as `traffic.authorization`. */
  readonly step: string
  readonly text: string
  readonly source?: NoteSource | undefined
}

/**
 * The step of a note, if it runs as a part of a backend. The phases of a request do not list such steps, or list
 * them as passed.
 */
interface NoteSource {
  /** The step. Its policies are recorded with the note. */
  readonly step: object | undefined
  /** Whether the step responds in place of the backend. Such a note is never dropped, since no step responds twice. */
  readonly isResponse?: boolean
}

const extension = 'decision.notes'
/** Maximum number of notes of a request; further ones are dropped. */
const maxNotes = 32

export function addNote(
  { extensions }: Exchange,
  step: string,
  text: string,
  source?: NoteSource,
): void {
  const notes = extensions.get(extension) as DecisionNote[] | undefined
  if (notes === undefined) extensions.set(extension, [{ step, text, source }])
  else if (notes.length < maxNotes || source?.isResponse === true)
    notes.push({ step, text, source })
}

export function notesOf({ extensions }: Exchange): readonly DecisionNote[] | undefined {
  if (extensions.size === 0) return undefined
  return extensions.get(extension) as DecisionNote[] | undefined
}
