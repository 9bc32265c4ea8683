import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type AnyCloudEvent,
  type SluiceEvent,
  UnknownEventTypeError,
  upcast,
  upcastExported,
  vocabulary,
} from './index.ts'

const folder = join(import.meta.dirname, 'samples')
const files = globSync('*.json', { cwd: folder }).sort()
const sample = (file: string): AnyCloudEvent =>
  JSON.parse(readFileSync(join(folder, file), 'utf8')) as AnyCloudEvent
const fileOf = (type: string) =>
  `${type
    .replace('dev.sluice.', '')
    .replaceAll('.', '-')
    .replace(/-v(\d+)$/, '.v$1')}.json`

describe('frozen samples of all event types and versions', () => {
  it.each(files)('reads %s in the current vocabulary', (file) => {
    const event = upcast(sample(file))
    const definition = vocabulary.find(({ type }) => type === event.type)
    expect(definition).toBeDefined()
    const known = Object.keys(definition?.fields ?? {})
    for (const field of Object.keys(event.data)) expect(known).toContain(field)
    expect(event.specversion).toBe('1.0')
    expect(event.datacontenttype).toBe('application/json')
    expect(new Date(event.time).toISOString()).toBe(event.time)
  })

  it('include one sample for each type in its current version, named after the type', () => {
    for (const { type } of vocabulary) expect(files).toContain(fileOf(type))
    for (const file of files) expect(fileOf(sample(file).type)).toBe(basename(file))
  })
})

describe('the event vocabulary', () => {
  it('ends each type with its version, and uses each name and each type once', () => {
    for (const { type, version } of vocabulary) {
      expect(type).toMatch(/^dev\.sluice\.[a-z]+\.[a-z]+\.v[0-9]+$/)
      expect(type.endsWith(`.v${version}`)).toBe(true)
    }
    expect(new Set(vocabulary.map(({ type }) => type)).size).toBe(vocabulary.length)
    expect(new Set(vocabulary.map(({ name }) => name)).size).toBe(vocabulary.length)
  })

  it('uses only CloudEvents attribute names that the specification allows', () => {
    for (const file of files) {
      for (const attribute of Object.keys(sample(file))) expect(attribute).toMatch(/^[a-z0-9]+$/)
    }
  })

  it('narrows the type of the data by the type of the event', () => {
    const lines = files.map((file) => describeEvent(upcast(sample(file))))
    expect(lines).toContain('HTTPRoute checkout in generation 2')
    expect(lines).toContain('replica-1 has lost epoch 7')
  })
})

function describeEvent(event: SluiceEvent): string {
  switch (event.type) {
    case 'dev.sluice.resource.applied.v1':
      return `${event.data.kind} ${event.data.name} in generation ${event.data.generation}`
    case 'dev.sluice.lease.lost.v1':
      return `${event.data.holder} has lost epoch ${event.data.epoch}`
    default:
      return event.type
  }
}

describe('upcasting old events', () => {
  const current = sample('timer-fired.v1.json')
  const ancient = { ...current, type: 'dev.sluice.timer.fired.v-1', data: { id: 'programmed' } }
  const table = {
    'dev.sluice.timer.fired.v-1': (event: AnyCloudEvent) => ({
      ...event,
      type: 'dev.sluice.timer.fired.v0',
      data: { timer: (event.data as { id: string }).id },
    }),
    'dev.sluice.timer.fired.v0': (event: AnyCloudEvent) => ({
      ...event,
      type: 'dev.sluice.timer.fired.v1',
      data: { ...(event.data as object), dueAt: event.time },
    }),
  }

  it('converts an old event step by step and keeps its envelope', () => {
    const lifted = upcast(ancient, table)
    expect(lifted.data).toEqual({ timer: 'programmed', dueAt: current.time })
    expect(lifted.id).toBe(current.id)
  })

  it('throws an error with the name of an unknown type', () => {
    expect(() => upcast({ ...current, type: 'dev.sluice.future.v9' })).toThrow(
      UnknownEventTypeError,
    )
    expect(() => upcast({ ...current, type: 'constructor' })).toThrow(/constructor is unknown/)
  })

  it.each([
    ['an object without metadata', { object: { apiVersion: 'v1', kind: 'Service' } }],
    ['metadata without a name', { object: { apiVersion: 'v1', kind: 'Service', metadata: {} } }],
    [
      'an age that is no time',
      {
        object: {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'a', creationTimestamp: '+999999-01-01T00:00:00Z' },
        },
      },
    ],
  ])('refuses %s as damaged', (_, data) => {
    const event = sample('resource-applied.v1.json')
    const changed = { ...event, data: { ...(event.data as object), ...data } }
    expect(() => upcastExported(changed)).toThrow(/event\.data\.object/)
  })

  it('refuses an event whose time is out of range', () => {
    const event = sample('resource-applied.v1.json')
    expect(() => upcastExported({ ...event, time: '2026-99-01T00:00:00Z' })).toThrow('event.time')
  })
})
