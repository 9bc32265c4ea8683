// A process to be killed: saves one snapshot after the other to the log named on the command line, and
// prints its position before and after.
import { createHash } from 'node:crypto'
import { openEmbeddedLog, type Position } from '../../src/control/log/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { routeApplied } from './events.ts'

/** Content that does not compress, so that storing it takes a while. */
export const contentOf = (position: number): Uint8Array =>
  createHash('shake256', { outputLength: 1_000_000 }).update(`${position}`).digest()

const [, script, target = ''] = process.argv
if (script === import.meta.filename) {
  const log = target.startsWith('nats:')
    ? await openNatsLog({ servers: target })
    : openEmbeddedLog(target).log
  for (let last = await log.lastPosition(); ; last = (last + 1) as Position) {
    if (last > 0) {
      const chunks = [contentOf(last), contentOf(-last)]
      process.stdout.write(`begin ${last}\n`)
      await log.saveSnapshot({ position: last, foldVersion: '1', chunks })
      process.stdout.write(`saved ${last}\n`)
    }
    await log.append([routeApplied(`r${last + 1}`)])
  }
}
