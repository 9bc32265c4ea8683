/** Exports of logs, which anyone may have written: errors name the place, and terminals get no escapes. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useFolder } from '../support/fixture.ts'
import { sluice } from '../support/gateway.ts'

const folder = useFolder('sluice-hostile-')
const sample = (name: string) =>
  JSON.parse(
    readFileSync(join(import.meta.dirname, `../../events/samples/${name}.v1.json`), 'utf8'),
  ) as { data: Record<string, unknown> }

const exportOf = (name: string, ...events: readonly object[]): string => {
  const file = join(folder, `${name}.jsonl`)
  const lines = events.map((event, index) => JSON.stringify({ position: index + 1, event }))
  writeFileSync(file, `${lines.join('\n')}\n`)
  return file
}
const good = sample('resource-applied')
const applied = (object: Record<string, unknown>) => ({
  ...good,
  data: { ...good.data, object: { ...(good.data.object as object), ...object } },
})

const commands = [['replay'], ['status'], ['explain', 'HTTPRoute/shop/checkout'], ['log']] as const

describe('an export with an event that no version writes', () => {
  const conditions = sample('conditions-decided')
  it.each([
    [
      'no list of problems',
      { ...sample('resource-refused'), data: { ...sample('resource-refused').data, problems: 5 } },
      'event.data.problems',
    ],
    [
      'a condition without a type',
      { ...conditions, data: { ...conditions.data, status: { conditions: [{}] } } },
      'event.data.status.conditions[0].type',
    ],
    [
      'a scope that is a text',
      { ...sample('relist-started'), data: { source: 'files', scope: 'x' } },
      'event.data.scope',
    ],
    ['a time outside the range', { ...good, time: '+275760-09-13T00:00:01Z' }, 'event.time'],
    [
      'a name that is a number',
      applied({ metadata: { name: 5 } }),
      'event.data.object.metadata.name',
    ],
  ])('(%s) is refused by file, line and field', async (name, event, field) => {
    const file = exportOf(name.replaceAll(' ', '-'), good, event)
    for (const command of commands) {
      const { code, stderr } = await sluice(...command, '--log-file', file)
      expect(stderr).toContain(`${file}:2`)
      expect(stderr).toContain(field)
      expect(code).toBe(2)
    }
  })
})

it.each([
  ['rules', { rules: 5 }],
  ['parentRefs', { parentRefs: [null] }],
  ['hostnames', { parentRefs: [{ name: 'web' }], hostnames: [{}], rules: [{}] }],
])('an object with invalid %s is no bug of a command', async (field, spec) => {
  const file = exportOf(`object-${field}`, good, applied({ spec }))
  for (const command of [['replay'], ['status']]) {
    const { code, stderr } = await sluice(...command, '--log-file', file)
    expect(stderr).not.toContain('bug:')
    expect(code).not.toBe(70)
    if (code === 2) expect(stderr).toContain(`${file}:2: event.data.object.spec.${field}`)
  }
})

it('names with terminal escapes are shown escaped', async () => {
  const hostile = '\u001b]0;owned\u0007\r\u202etxt'
  const metadata = { name: hostile, namespace: 'shop' }
  const event = applied({ metadata }) as typeof good
  const file = exportOf('escapes', { ...event, data: { ...event.data, name: hostile } })
  for (const command of [['status'], ['log'], ['log', '-o', 'json'], ['replay']]) {
    const { stdout, stderr } = await sluice(...command, '--log-file', file)
    expect(`${stdout}${stderr}`).not.toMatch(/(?![\t\n])[\p{Cc}\u202e]/u)
  }
})
