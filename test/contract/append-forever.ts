// A process to be killed: appends batches of ten events to the log named on the command line, one
// after the other, and says so after each.
import { openEmbeddedLog } from '../../src/control/log/index.ts'
import { appendedBatch } from './events.ts'

const { log } = openEmbeddedLog(process.argv[2]!)
for (let batch = Number(await log.lastPosition()) / 10; ; batch++) {
  await log.append(appendedBatch(batch))
  process.stdout.write(`${batch}\n`)
}
