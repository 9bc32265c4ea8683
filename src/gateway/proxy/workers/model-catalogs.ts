/**
 * Reads the user's catalogs of language models, and reads them again when they change. It polls, because a volume of
 * a ConfigMap changes by a swap of links, and because minutes do not matter.
 */
import { statSync } from 'node:fs'
import { readCatalog } from '../../../engines/messages/catalog/read-catalog.ts'
import { type CatalogText, catalogWith } from '../../../engines/messages/catalog/shipped.ts'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import type { ToWorker } from './worker-messages.ts'
import type { WorkerThread } from './worker-thread.ts'

const pollMs = 2_000

export type CatalogEvent =
  /** A part of a catalog is not in force; the rest is. */
  | { readonly type: 'catalog-problem'; readonly message: string }
  /** Catalogs have been read; the digest names what is in force. */
  | { readonly type: 'catalogs'; readonly digest: string }

interface CatalogFile {
  readonly path: string
  /** What differs between versions of the file; undefined if it cannot be read. */
  version: string | undefined
  /** The last text that is a catalog; undefined if there was none yet. */
  text: string | undefined
}

export class ModelCatalogs {
  readonly #files: readonly CatalogFile[]
  readonly #threads: readonly Pick<WorkerThread, 'send'>[]
  readonly #emit: (event: CatalogEvent) => void
  readonly #timer: NodeJS.Timeout | undefined
  #reported = new Set<string>()

  constructor(
    paths: readonly string[],
    threads: readonly Pick<WorkerThread, 'send'>[],
    emit: (event: CatalogEvent) => void,
  ) {
    this.#files = paths.map((path) => ({ path, version: '', text: undefined }))
    this.#threads = threads
    this.#emit = emit
    if (paths.length === 0) return
    this.#read()
    this.#timer = setInterval(() => this.#read(), pollMs).unref()
  }

  /** The message with which workers get the catalogs in force. */
  get message(): ToWorker {
    return { type: 'catalogs', catalogs: this.#texts }
  }

  get #texts(): readonly CatalogText[] {
    return this.#files.flatMap(({ path, text }) =>
      text === undefined ? [] : [{ name: path, text }],
    )
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #read(): void {
    const problems: string[] = []
    let isChanged = false
    for (const file of this.#files) {
      const problem = this.#readFile(file, () => {
        isChanged = true
      })
      if (problem !== undefined) problems.push(`${file.path}: ${problem}`)
    }
    if (!isChanged) return
    const { catalog, problems: invalid } = catalogWith(this.#texts)
    this.#report([...problems, ...invalid])
    for (const thread of this.#threads) thread.send(this.message)
    this.#emit({ type: 'catalogs', digest: catalog.digest })
  }

  #readFile(file: CatalogFile, changed: () => void): string | undefined {
    let text: string
    try {
      const { ino, mtimeMs, size } = statSync(file.path)
      const version = `${ino} ${mtimeMs} ${size}`
      if (version === file.version) return undefined
      text = readWholeFile(file.path)
      file.version = version
    } catch (error) {
      if (file.version !== undefined) changed()
      file.version = undefined
      return reason(error, file)
    }
    changed()
    const { providers, families, problems } = readCatalog(text)
    if (providers.size === 0 && families.length === 0 && problems.length > 0) {
      return `${problems[0]}; ${kept(file)}`
    }
    file.text = text
    return undefined
  }

  /** Reports what was not reported before. */
  #report(problems: readonly string[]): void {
    for (const problem of problems) {
      if (this.#reported.has(problem)) continue
      this.#emit({ type: 'catalog-problem', message: problem })
    }
    this.#reported = new Set(problems)
  }
}

const kept = ({ text }: CatalogFile): string =>
  text === undefined ? 'the catalog is not used' : 'the last valid catalog stays in force'

const reason = (error: unknown, file: CatalogFile): string =>
  `${error instanceof Error ? error.message : String(error)}; ${kept(file)}`
