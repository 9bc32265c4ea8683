// Records examples/NAME/recorded.jsonl: runs the gateway on a copy of the example, makes the edits
// listed below, and exports the event log. Give names, or none for all. Run it when the version of
// the fold has changed; test/replay replays every recording.
import { spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const examples = join(root, 'examples')
const launcher = join(root, 'bin', 'sluice')

/** What is done to the copy while the gateway runs: file, and its text from the text before. */
const edits = {
  quickstart: [
    // A mistake, and its mending: the version before stays in force in between.
    ['echo.yaml', (text) => text.replace('hostnames:', 'hostnamez:')],
    ['echo.yaml', (text) => text.replace('hostnamez:', 'hostnames:')],
  ],
  'weighted-split': [
    [
      'shop.yaml',
      (text) => text.replace('weight: 90', 'weight: 50').replace('weight: 10', 'weight: 50'),
    ],
  ],
  // The guard is taken away.
  'fail-closed': [['guard.yaml', () => undefined]],
}

function fail(message) {
  console.error(message)
  process.exit(1)
}

/** Events of a log while the gateway writes it. */
function exportLog(logFile) {
  const result = spawnSync(launcher, ['log', '--log-file', logFile, '-o', 'json'], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  if (result.status !== 0) fail(result.stderr)
  return result.stdout
}

const parse = (text) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** Waits until more observations than before are in force at the proxy; returns how many there are. */
async function settled(logFile, before) {
  for (let attempt = 0; attempt < 200; attempt++) {
    const events = existsSync(logFile) ? parse(exportLog(logFile)) : []
    const rejected = events.find(({ event }) => event.type === 'dev.sluice.config.rejected.v1')
    if (rejected !== undefined) fail(`the proxy refused: ${rejected.event.data.message}`)
    const observed = events.filter(({ event }) => event.type.startsWith('dev.sluice.resource.'))
    const acked = events.findLast(({ event }) => event.type === 'dev.sluice.config.acked.v1')
    const last = observed.at(-1)?.position ?? Number.POSITIVE_INFINITY
    if (observed.length > before && acked?.event.data.sequence >= last) return observed.length
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return fail('the proxy did not acknowledge the configuration')
}

function edit(path, change) {
  const text = change(readFileSync(path, 'utf8'))
  if (text === undefined) {
    rmSync(path)
    return
  }
  writeFileSync(`${path}.tmp`, text)
  renameSync(`${path}.tmp`, path)
}

async function record(name) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-record-'))
  const logFile = join(folder, 'events.db')
  const copy = join(folder, 'examples', name)
  cpSync(join(examples, name), copy, { recursive: true })
  const quiet = ['--admin-address', 'off', '--stats-address', '127.0.0.1:0']
  const where = ['--bind-address', '127.0.0.1', '--readiness-address', '127.0.0.1:0']
  const args = ['run', '-f', `examples/${name}`, '--log-file', logFile, ...where, ...quiet]
  const gateway = spawn(launcher, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = new Promise((resolve) => gateway.once('exit', resolve))
  // A gateway that outlives a failure would keep the ports of the next one.
  process.once('exit', () => gateway.kill('SIGKILL'))
  try {
    let observed = await settled(logFile, 0)
    for (const [file, change] of edits[name] ?? []) {
      edit(join(copy, file), change)
      observed = await settled(logFile, observed)
    }
  } finally {
    gateway.kill('SIGTERM')
    await ended
  }
  writeFileSync(join(examples, name, 'recorded.jsonl'), exportLog(logFile))
  rmSync(folder, { recursive: true })
  console.log(`recorded ${name}`)
}

const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
  cwd: root,
  stdio: 'inherit',
})
if (build.status !== 0) process.exit(build.status ?? 1)

/** Examples of something else than a gateway have no manifests. */
const hasManifests = (name) =>
  readdirSync(join(examples, name)).some((file) => file.endsWith('.yaml'))

const given = process.argv.slice(2)
const names = given.length > 0 ? given : readdirSync(examples).filter(hasManifests)
for (const name of names) await record(name)
