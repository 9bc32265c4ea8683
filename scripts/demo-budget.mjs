// `npm run demo:budget`: starts mock vendors and the gateway on examples/budgets, spends a budget with many requests
// at once, kills the gateway in between, and shows that the amount holds. Needs no account, and keeps nothing.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tour } from '../examples/budgets/tour.mjs'
import { prepare, sluice, startGateway } from './demo.mjs'

await prepare()
const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const log = ['--log-file', join(folder, 'events.db')]
let running = await startGateway('-f', 'examples/budgets/manifests', ...log)
const gateway = {
  kill: () => running.kill(),
  async start() {
    running = await startGateway('-f', 'examples/budgets/manifests', ...log)
  },
  run: (command, ...args) => sluice('budgets', command, ...args, ...log),
}
await tour('http://127.0.0.1:8080', gateway, (line) => console.log(`\n${line}`))
running.stop()
