/**
 * Manifests as a source that one replica of several appends from.
 *
 * ```
 *   following ── the lease is acquired ──► leading: lists, appends what the log does not know
 *       ▲                                     │
 *       └────────── it is lost ───────────────┘
 * ```
 *
 * A replica that follows reads the manifests as well: for the values of their Secrets, and to report
 * their problems on the machine where they are.
 */
import { FileSource, type FileSourceOptions } from './files.ts'
import { ResourceIndex } from './resource-index.ts'
import { formatProblem, type SourceProblem } from './source-problem.ts'

interface ManifestFilesOptions extends Omit<FileSourceOptions, 'index' | 'epoch'> {
  /** Do other replicas write to the same log, so that this one may have to follow? */
  readonly isShared: boolean
}

export class ManifestFiles {
  /** Manifests are listed when this replica begins to lead. */
  readonly isListed = true
  readonly #options: ManifestFilesOptions
  #source: FileSource | undefined
  /** Beginnings and ends of reading, one after the other. */
  #turn: Promise<void> = Promise.resolve()
  readonly #reported = new Set<string>()
  /** The `source` attribute of events. */
  #name = ''

  constructor(options: ManifestFilesOptions) {
    this.#options = options
  }

  start(): Promise<void> {
    if (this.#options.isShared) this.follow()
    return this.#turn
  }

  /** Appends from now on: first every difference to the index, that of the log. */
  lead(index: ResourceIndex, epoch: number): Promise<void> {
    this.#name = index.source
    return this.#begin(index, epoch, this.#options.onChange)
  }

  /** Appends no more; an append under way may still arrive, and is ignored. */
  follow(): void {
    this.#begin(new ResourceIndex(this.#name), 0, async () => undefined).catch(() => undefined)
  }

  secretDigests(): Set<string> {
    return this.#source?.secretDigests() ?? new Set()
  }

  async close(): Promise<void> {
    await this.#turn
    await this.#source?.close()
  }

  #begin(
    index: ResourceIndex,
    epoch: number,
    onChange: FileSourceOptions['onChange'],
  ): Promise<void> {
    const begun = this.#turn.then(async () => {
      await this.#source?.close()
      this.#source = new FileSource({
        ...this.#options,
        index,
        epoch: () => epoch,
        onChange,
        onProblem: (problem) => this.#report(problem),
      })
      await this.#source.start()
    })
    this.#turn = begun.catch(() => undefined)
    return begun
  }

  /** Problems that were reported before the lease changed need not be reported again. */
  #report(problem: SourceProblem): void {
    const text = formatProblem(problem)
    if (problem.reason !== 'unrecorded' && this.#reported.has(text)) return
    this.#reported.add(text)
    this.#options.onProblem(problem)
  }
}
