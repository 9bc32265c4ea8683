/**
 * Loaded into the gateway of a soak (`node --import`). Each worker thread listens on a socket of its own in
 * the folder `SLUICE_SOAK_SWITCHES`, and ends at once when somebody connects.
 */
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { isMainThread, threadId } from 'node:worker_threads'

const folder = process.env.SLUICE_SOAK_SWITCHES
if (!isMainThread && folder !== undefined) {
  const path = join(folder, `worker-${threadId}`)
  createServer(() => {
    rmSync(path)
    process.exit(1)
  })
    .listen(path)
    .unref()
}
