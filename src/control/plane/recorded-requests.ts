/** The newest recorded requests, on which changes are judged. */
import { readWholeFile } from '../../ground/base/read-whole-file.ts'
import { readBlocks, readNewest } from '../../past/decisions/read.ts'
import { recordKeyOf } from '../../past/decisions/ring.ts'
import type { JudgeOptions } from '../../past/what-if/judge.ts'
import type { JudgingOptions } from './parts.ts'

interface RecordPlaces {
  /** Folder with the records of the proxy of this process. */
  readonly folder?: string | undefined
  /** NATS servers that have the records of all proxies. They are used instead of the folder. */
  readonly nats?: string | undefined
  /** Returns the blocks that proxies have sent to this process, newest first. */
  readonly collected?: (() => readonly Buffer[]) | undefined
  readonly settings?: JudgeOptions['simulator']['settings']
  /** Paths of model catalogs with prices, in addition to the shipped one. */
  readonly catalogs?: readonly string[] | undefined
}

/** Maximum number of requests on which a change is judged. */
const maxRequests = 50_000
/** Maximum bytes of records in memory. */
const maxBytes = 16 * 1024 * 1024

/** Where the judge finds recorded requests. */
export function recordedRequests({
  folder,
  nats,
  collected,
  settings,
  catalogs = [],
}: RecordPlaces): Pick<JudgingOptions, 'records' | 'simulator' | 'catalog'> {
  const simulator = () => {
    const digestKey = folder === undefined ? undefined : recordKeyOf(folder)
    return { ...(settings && { settings }), ...(digestKey && { digestKey }) }
  }
  const catalog = () => readCatalogs(catalogs)
  if (nats !== undefined) return { simulator, catalog, records: () => published(nats) }
  if (collected !== undefined) {
    return { simulator, catalog, records: async () => () => newestOf(collected()) }
  }
  if (folder === undefined) return {}
  return { simulator, catalog, records: async () => () => newestIn(folder) }
}

/** @throws Error if a file cannot be read, so that changes are held whose costs would be compared */
async function readCatalogs(paths: readonly string[]): ReturnType<JudgeOptions['catalog']> {
  const { catalogWith } = await import('../../engines/messages/catalog/shipped.ts')
  return catalogWith(paths.map((name) => ({ name, text: readWholeFile(name) }))).catalog
}

function newestIn(folder: string): ReturnType<JudgeOptions['records']> {
  try {
    return readNewest(folder, maxRequests)
  } catch {
    // The proxy creates the folder with its first record.
    return []
  }
}

/** Reads the newest blocks once. Without a stream, there are no records. */
async function published(servers: string): Promise<JudgeOptions['records']> {
  const { readPublishedBlocks } = await import('../log/nats-decision-reader.ts')
  const { LogError } = await import('../log/log.ts')
  const blocks: Buffer[] = []
  let total = 0
  try {
    for await (const { bytes } of readPublishedBlocks(servers)) {
      blocks.push(bytes)
      total += bytes.length
      while (total > maxBytes) total -= blocks.shift()?.length ?? total
    }
  } catch (error) {
    if (!(error instanceof LogError && error.code === 'foreign')) throw error
  }
  return () => newestOf(blocks.toReversed())
}

function* newestOf(blocks: readonly Buffer[]): ReturnType<typeof readNewest> {
  let left = maxRequests
  for (const bytes of blocks) {
    for (const result of readBlocks(bytes, 'a message')) {
      if (left-- <= 0) return
      if ('decision' in result) yield result.decision
    }
  }
}
