/** `sluice records export` writes recorded requests to a signed file. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { framesOf } from '../../../past/decisions/frame.ts'
import { readBlocks } from '../../../past/decisions/read.ts'
import { decisionFiles } from '../../../past/decisions/ring.ts'
import { folderOf, problemText, timeOf } from '../decisions/source.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { readSigningKey, signedFile } from './signed-file.ts'

export interface ExportOptions {
  readonly recordDir: string
  readonly key: string
  readonly since?: string
  /** Maximum size of the file in MB. */
  readonly maxMegabytes: number
}

/** A block of records. */
interface ExportedBlock {
  readonly bytes: Buffer
  readonly records: number
  readonly from: string
  readonly to: string
}

export async function exportRecords(
  file: string,
  { recordDir, key, since, maxMegabytes }: ExportOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const signer = readSigningKey(key, 'sign')
  const start = since === undefined ? '' : timeOf(since, '--since')
  const found = [...blocksOf(folderOf(recordDir), report)].filter(({ to }) => to >= start)
  const blocks = newest(found, maxMegabytes * 1_000_000)
  const records = blocks.reduce((sum, one) => sum + one.records, 0)
  if (records === 0) throw new UsageError(`${recordDir} has no records to export`)
  const [from, to] = [blocks[0]?.from, blocks.at(-1)?.to]
  const created = new Date().toISOString()
  const about = { created, records, ...(from && { from }), ...(to && { to }) }
  const bytes = await signedFile(Buffer.concat(blocks.map((one) => one.bytes)), about, signer)
  writeFileSync(file, bytes, { mode: 0o600 })
  const left = found.length - blocks.length
  return {
    text: () => [
      `${file}: ${records} requests from ${from} to ${to}, ${bytes.length} bytes`,
      ...(left > 0
        ? [`${left} older blocks of records were left out: the file may have ${maxMegabytes} MB`]
        : []),
    ],
    json: { file, bytes: bytes.length, ...about },
    exitCode: exitCode.success,
  }
}

/** Returns the newest blocks that fit, oldest first. */
function newest(blocks: readonly ExportedBlock[], maxBytes: number): ExportedBlock[] {
  const sorted = blocks.toSorted((a, b) => (a.to < b.to ? -1 : 1))
  let size = 0
  const first = sorted.findLastIndex(({ bytes }) => {
    size += bytes.length
    return size > maxBytes
  })
  return sorted.slice(first + 1)
}

function* blocksOf(folder: string, report: Output['report']): Generator<ExportedBlock> {
  for (const name of decisionFiles(folder)) {
    const file = join(folder, name)
    const bytes = readFileSync(file)
    for (const { offset, end } of framesOf(bytes)) {
      const block = bytes.subarray(offset, end)
      const times: string[] = []
      for (const result of readBlocks(block, file)) {
        if ('decision' in result) times.push(result.decision.time)
        else report(problemText(result.problem))
      }
      const [from, to] = [times.toSorted()[0], times.toSorted().at(-1)]
      if (from !== undefined && to !== undefined) {
        yield { bytes: block, records: times.length, from, to }
      }
    }
  }
}
