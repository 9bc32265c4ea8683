/** Where `sluice what-if` finds recorded requests: in a folder, or in a signed file. */
import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type ReadResult, readBlocks, readFolder } from '../../../past/decisions/read.ts'
import { recordKeyOf } from '../../../past/decisions/ring.ts'
import { durationOf } from '../decisions/source.ts'
import { maxFileBytes, readSigningKey, verifiedBlocks } from '../records/signed-file.ts'
import { UsageError } from '../shared/output.ts'

export interface RecordSource {
  /** The folder or file. */
  readonly name: string
  /** Key of the digests of header values; undefined if it is unknown. */
  readonly digestKey: Uint8Array | undefined
  /** Reads the records from the beginning. */
  read(): Iterable<ReadResult>
}

export interface RecordOptions {
  /** Folder with decision records. */
  readonly requests?: string
  /** File that `sluice records export` has written. */
  readonly records?: string
  /** File with the key that verifies its signature. */
  readonly recordsKey?: string
  /** Maximum age of the file, such as 7d. */
  readonly recordsMaxAge?: string
}

/** @throws UsageError if the folder or file cannot be used. Returns undefined if none is given. */
export async function openRecords(options: RecordOptions): Promise<RecordSource | undefined> {
  const { requests: folder, records } = options
  if (records !== undefined) return openFile(records, options)
  if (options.recordsKey !== undefined) throw new UsageError('--records-key needs --records')
  if (folder === undefined) return undefined
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`--record-dir ${folder} is not a folder with decision records`)
  }
  return { name: folder, digestKey: recordKeyOf(folder), read: () => readFolder(folder) }
}

async function openFile(
  file: string,
  { requests, recordsKey, recordsMaxAge = '7d' }: RecordOptions,
): Promise<RecordSource> {
  if (requests !== undefined) {
    throw new UsageError('give recorded requests with only one of --record-dir and --records')
  }
  if (recordsKey === undefined) {
    throw new UsageError('--records needs --records-key, the key that must have signed the file')
  }
  const key = readSigningKey(recordsKey, 'verify')
  const maxAgeMs = durationOf(recordsMaxAge, '--records-max-age')
  const bytes = await readExport(file)
  const blocks = await verifiedBlocks(file, bytes, key, maxAgeMs)
  return { name: file, digestKey: undefined, read: () => readBlocks(blocks, file) }
}

async function readExport(file: string): Promise<Buffer> {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found?.isFile() !== true) throw new UsageError(`--records ${file} is not a file`)
  if (found.size > maxFileBytes) {
    throw new UsageError(`--records ${file} is larger than ${maxFileBytes / 1_048_576} MiB`)
  }
  return readFile(file)
}
