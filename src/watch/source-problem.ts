/** Something in a source that a person must repair. Lines and columns begin at 1. */
export interface SourceProblem {
  /** `warning`: nothing is refused, but something that was written is not read. */
  readonly severity: 'error' | 'warning'
  readonly reason: SourceProblemReason
  readonly file: string
  /** Absent where the problem is of the file or folder as a whole. */
  readonly line?: number
  readonly column?: number
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  /** Field of the object, such as `spec.rules[0].matches`. */
  readonly path?: string
  readonly message: string
}

/**
 * - `unreadable`: a file or folder that the system does not let us read; what it had stays.
 * - `syntax`: a file that is not YAML or JSON; what it had stays.
 * - `invalid`: an object that is refused; its last valid version stays.
 * - `faulty`: an object that is taken although a part of it means nothing; its status says more.
 * - `duplicate`: an object that is refused because another file defines it already.
 * - `ignored`: an object of a kind that is not ours to read.
 * - `unwatched`: a folder whose changes are found by looking only.
 * - `unrecorded`: changes that the log did not take yet.
 */
type SourceProblemReason =
  | 'unreadable'
  | 'syntax'
  | 'invalid'
  | 'faulty'
  | 'duplicate'
  | 'ignored'
  | 'unwatched'
  | 'unrecorded'

/** `file:line:column: Kind namespace/name: path: message`, without the parts that are not known. */
export function formatProblem(problem: SourceProblem): string {
  const { file, line, column, kind, namespace, name, path, message } = problem
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  const object =
    kind === undefined ? undefined : `${kind} ${namespace ? `${namespace}/` : ''}${name ?? ''}`
  const parts = [place, object?.trimEnd(), path, message]
  return parts.filter((part) => part !== undefined && part !== '').join(': ')
}

/** Has a file given no objects at all? What it would say of them is unknown then. */
export function isUnreadable({ severity, reason }: SourceProblem): boolean {
  return severity === 'error' && (reason === 'syntax' || reason === 'unreadable')
}
