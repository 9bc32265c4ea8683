/** A problem in a source that a user must fix. Lines and columns begin at 1. */
export interface SourceProblem {
  /** `warning`: nothing is refused, but something is ignored. */
  readonly severity: 'error' | 'warning'
  readonly reason: SourceProblemReason
  readonly file: string
  /** Not set if the problem concerns the whole file or folder. */
  readonly line?: number
  readonly column?: number
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  /** Field of the object, such as `spec.rules[0].matches`. */
  readonly path?: string
  readonly message: string
}

type SourceProblemReason =
  /** A file or folder that cannot be read; its objects stay. */
  | 'unreadable'
  /** A file that is not YAML or JSON; its objects stay. */
  | 'syntax'
  /** An object that is refused; its last valid version stays. */
  | 'invalid'
  /** An object that is used although a part of it has no effect; its status says more. */
  | 'faulty'
  /** A reference to an object that the files do not define. */
  | 'unresolved'
  /** A setting that replaces guards of a less specific one. */
  | 'replaced'
  /** A certificate that is not valid now or expires soon. */
  | 'certificate'
  /** A rule that no request can reach, because another rule comes first. */
  | 'unreachable'
  /** An object that is refused because another file defines it. */
  | 'duplicate'
  /** An object of a kind or version that Sluice does not read, although it concerns gateways. */
  | 'ignored'
  /** An object that does not concern gateways, such as a Deployment. */
  | 'foreign'
  /** A folder that cannot be watched and is read at intervals. */
  | 'unwatched'
  /** Changes that could not be appended to the log yet. */
  | 'unrecorded'

/**
 * `file:line:column: Kind namespace/name: path: message`, without the parts that are not set. A warning has
 * `warning` after its place.
 */
export function formatProblem(problem: SourceProblem): string {
  const { severity, file, line, column, kind, namespace, name, path, message } = problem
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  const object =
    kind === undefined ? undefined : `${kind} ${namespace ? `${namespace}/` : ''}${name ?? ''}`
  const mark = severity === 'warning' ? severity : undefined
  const parts = [place, mark, object?.trimEnd(), path, message]
  return parts.filter((part) => part !== undefined && part !== '').join(': ')
}

/** Whether the problem makes it unknown which objects its file defines. */
export function isUnreadable({ severity, reason }: SourceProblem): boolean {
  return severity === 'error' && (reason === 'syntax' || reason === 'unreadable')
}
