import assert from 'node:assert/strict'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DamagedEventError, UnknownEventTypeError } from '../../../events/index.ts'
import { LogError } from '../../../src/control/log/index.ts'
import { apiBinding } from '../../../src/control/plane/api-binding.ts'
import { DigestKey } from '../../../src/control/watch/digest-key.ts'
import { contentOf } from '../../../src/control/watch/observed.ts'
import { explain } from '../../../src/tools/cli/explain/explain.ts'
import { printLog } from '../../../src/tools/cli/log/log.ts'
import { invalidObjectError } from '../../../src/tools/cli/recording/invalid-objects.ts'
import { openedLogs } from '../../../src/tools/cli/recording/opened-logs.ts'
import { replayLog } from '../../../src/tools/cli/replay/replay.ts'
import { type CommandResult, UsageError } from '../../../src/tools/cli/shared/output.ts'
import { status } from '../../../src/tools/cli/status/status.ts'
import { type Fields, realObjects } from '../support/control-plane.ts'
import { hostile } from '../support/hostile.ts'
import type { Random } from '../support/random.ts'
import { defineTarget } from '../support/target.ts'

const folder = join(import.meta.dirname, '../../../events/samples')
/** One event of each type. */
const samples = globSync('*.json', { cwd: folder })
  .sort()
  .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Fields)
const applied = samples.find(({ type }) => type === 'dev.sluice.resource.applied.v1') ?? {}

/** Every object of the manifests as an event of a log. */
const observed = realObjects.flatMap((written): Fields[] => {
  const { metadata, kind } = written as { metadata?: Fields; kind?: unknown }
  const namespaced = { ...written, metadata: { namespace: 'default', ...metadata } }
  const options = { ...apiBinding, digestKey: new DigestKey(new Uint8Array(32)) }
  const content = [namespaced, written].map((object) => contentOf(object, options))
  const valid = content.find(({ state }) => state === 'valid')
  if (valid?.state !== 'valid') return []
  const { namespace = '', name } = valid.object.metadata as Fields
  const data = { ...(applied.data as Fields), kind, namespace, name, object: valid.object }
  const subject = `sluice.local.${kind}.${namespace || '_'}.${name}`
  return [{ ...applied, id: `${kind} ${namespace}/${name}`, subject, data }]
})

const all = [...observed, ...samples]
const parts = samples.map(({ data }) => data)

function eventsFor(random: Random): unknown[] {
  const events = Array.from({ length: 1 + random.below(12) }, () =>
    random.pick(random.oneIn(4) ? samples : observed),
  )
  const at = random.below(events.length)
  const changed = random.oneIn(2)
    ? hostile([events[at]], random, parts)
    : [inObject(events[at] ?? {}, random)]
  return [...events.slice(0, at), ...changed, ...events.slice(at + 1)]
}

/** Changes only the object of an event, so that the event itself is one. */
function inObject(event: Fields, random: Random): unknown {
  const { object, ...data } = (event.data ?? {}) as Fields
  if (object === undefined) return hostile([event], random, parts)[0]
  return { ...event, data: { ...data, object: hostile([object], random, parts)[0] } }
}

export default defineTarget({
  about:
    'no export of a log is a bug of the commands that read it; errors name the line and the field',
  generate(random) {
    const first = random.oneIn(8) ? 1 + random.below(100) : 1
    const lines = eventsFor(random).map((event, index) =>
      JSON.stringify({ position: first + index, event }),
    )
    return lines.join('\n')
  },
  start() {
    const place = mkdtempSync(join(tmpdir(), 'sluice-fuzz-'))
    const logFile = join(place, 'export.jsonl')
    const report = () => undefined
    const named = all.slice(0, 40).flatMap(({ data }) => {
      const { kind, namespace, name } = data as Fields
      return kind === undefined ? [] : [`${kind}/${namespace}/${name}`]
    })
    const commands: readonly (() => Promise<CommandResult>)[] = [
      () => replayLog({ logFile }, report),
      () => status({ logFile }, report),
      () => printLog({ logFile }, report),
      ...[...new Set(named)]
        .slice(0, 4)
        .map((what) => () => explain(what, [], { logFile, output: 'text' }, report)),
    ]
    return {
      async check(input) {
        // A file that begins otherwise is no export, but may be a database.
        if (!input.subarray(0, 12).toString().startsWith('{"position":')) return
        writeFileSync(logFile, input)
        for (const command of commands) await checkAnswer(command)
      },
      close: () => rmSync(place, { recursive: true, force: true }),
    }
  },
})

async function checkAnswer(command: () => Promise<CommandResult>): Promise<void> {
  openedLogs.clear()
  try {
    const { text, json } = await command()
    assert.ok(text().every((line) => typeof line === 'string'))
    JSON.stringify(json)
  } catch (error) {
    const isKnown =
      error instanceof UsageError ||
      error instanceof LogError ||
      error instanceof DamagedEventError ||
      error instanceof UnknownEventTypeError
    const named = isKnown ? error : await invalidObjectError(error)
    if (named === undefined) throw error
    assert.match(named.message, /export\.jsonl(:\d+)?[: ]|position/)
  }
}
