// A process to be killed: appends batches of 100 events to the log on the server named on the
// command line, one after the other, and says so after each.
import { openNatsLog } from '../../src/control/log/nats.ts'
import { routeApplied } from './events.ts'

const log = await openNatsLog({ servers: process.argv[2]! })
for (let batch = Number(await log.lastPosition()) / 100; ; batch++) {
  const events = Array.from({ length: 100 }, (_, index) => routeApplied(`b${batch}-${index}`))
  await log.append(events)
  process.stdout.write(`${batch}\n`)
}
