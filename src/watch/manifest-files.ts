/**
 * Manifests as the source of one replica of several.
 *
 * ```
 *   following ── the lease is taken ──► leading: lists, appends what the log does not know
 *       ▲                                  │
 *       └────────── it is lost ────────────┘
 * ```
 *
 * Whoever follows reads the manifests as well: for the values of their Secrets, and so that what is
 * wrong with them is told where they are.
 */
import type { SluiceEvent } from '../../events/index.ts'
import { FileSource, type FileSourceOptions } from './index.ts'
import { ResourceIndex } from './resource-index.ts'
import { formatProblem, type SourceProblem } from './source-problem.ts'

export interface ManifestFilesOptions
  extends Omit<FileSourceOptions, 'index' | 'epoch' | 'onChange'> {
  /** Appends what is seen, all or none. */
  readonly append: (events: readonly SluiceEvent[]) => Promise<unknown>
}

export class ManifestFiles {
  readonly #options: ManifestFilesOptions
  #source: FileSource | undefined
  /** Beginnings and ends of reading, one after the other. */
  #turn: Promise<void> = Promise.resolve()
  readonly #told = new Set<string>()
  #name = ''

  constructor(options: ManifestFilesOptions) {
    this.#options = options
  }

  /** Appends from now on: first every difference to what the index, that of the log, knows. */
  lead(index: ResourceIndex, epoch: number): Promise<void> {
    this.#name = index.source
    const begun = this.#turn.then(() =>
      this.#begin(index, epoch, async (events) => void (await this.#options.append(events))),
    )
    this.#turn = begun.catch(() => undefined)
    return begun
  }

  /** Appends no more; an append under way may still arrive, and counts for nothing. */
  follow(): void {
    const index = new ResourceIndex(this.#name)
    const begun = this.#turn.then(() => this.#begin(index, 0, async () => undefined))
    this.#turn = begun.catch(() => undefined)
  }

  /** Resolves when the reading that was asked for last has begun. */
  settled(): Promise<void> {
    return this.#turn
  }

  secretDigests(): Set<string> {
    return this.#source?.secretDigests() ?? new Set()
  }

  async close(): Promise<void> {
    await this.#turn
    await this.#source?.close()
  }

  async #begin(
    index: ResourceIndex,
    epoch: number,
    onChange: FileSourceOptions['onChange'],
  ): Promise<void> {
    await this.#source?.close()
    const { append: _, ...options } = this.#options
    const onProblem = (problem: SourceProblem) => this.#tell(problem)
    this.#source = new FileSource({ ...options, index, epoch: () => epoch, onChange, onProblem })
    await this.#source.start()
  }

  /** What was told before a turn need not be told again after it. */
  #tell(problem: SourceProblem): void {
    const text = formatProblem(problem)
    if (problem.reason !== 'unrecorded' && this.#told.has(text)) return
    this.#told.add(text)
    this.#options.onProblem(problem)
  }
}
