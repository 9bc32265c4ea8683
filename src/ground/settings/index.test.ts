import { describe, expect, it } from 'vitest'
import { drainDeadlines, settings } from './index.ts'
import { readTable } from './table.ts'

const readSettings = (
  flags: Partial<Record<keyof typeof settings, string>>,
  env: Record<string, string>,
) => readTable(settings, flags, env)

describe('reading the settings of a proxy', () => {
  it('prefers a flag to the environment, and the environment to the default', () => {
    const env = { SLUICE_WORKERS: '3', SLUICE_STATS_ADDRESS: ':9', LOG_FORMAT: '' }
    expect(readSettings({ workers: '2' }, env)).toMatchObject({
      ok: true,
      value: { workers: 2, statsAddress: ':9', accessLog: 'text', adminAddress: 'localhost:15000' },
    })
  })

  it.each(['off', ':0', '127.0.0.1:15000', 'localhost:1', '[::1]:65535'])(
    'reads the address %s',
    (adminAddress) =>
      expect(readSettings({ adminAddress }, {})).toMatchObject({ value: { adminAddress } }),
  )

  it.each(['15000', 'localhost', '127.0.0.1:65536', '::1:80', 'a b:1', 'host:-1'])(
    'refuses the address %j',
    (adminAddress) => expect(readSettings({ adminAddress }, {}).ok).toBe(false),
  )

  it('reads lists of addresses and CIDRs, and refuses a list with anything else', () => {
    const read = (dynamicAllow: string) => readSettings({ dynamicAllow }, {})
    const dynamicAllow = ['127.0.0.0/8', '::1', 'fd00::/8']
    expect(read('127.0.0.0/8, ::1,fd00::/8')).toMatchObject({ value: { dynamicAllow } })
    for (const wrong of [
      '127.0.0.0/33',
      '127.0.0',
      'localhost',
      '::1/129',
      '1.2.3.4,',
      '1.2.3.4/',
    ]) {
      expect(read(wrong).ok).toBe(false)
    }
  })

  it('reports all problems at once, each with its source', () => {
    expect(readSettings({ workers: '0' }, { LOG_FORMAT: 'xml' })).toEqual({
      ok: false,
      problems: [
        { source: '--workers', message: '"0" is not 1 to 256, or `auto`' },
        { source: 'LOG_FORMAT', message: '"xml" is not `text` or `json`' },
      ],
    })
  })
})

describe('settings with passwords', () => {
  it('are refused if they cannot be decoded, and messages do not show them', () => {
    for (const answerStore of [
      'redis://me:p%40ss@[::1]:6379/3',
      'nats://a:4222,nats://me:p%40ss@b:4222',
      'tls://nats',
    ]) {
      expect(readSettings({ answerStore }, {}).ok).toBe(true)
    }
    for (const answerStore of ['nats://', 'nats://a,redis://b', 'nats://a:%ff@b']) {
      expect(readSettings({ answerStore }, {}).ok).toBe(false)
    }
    const wrong = [
      ['SLUICE_ANSWER_STORE', 'redis://:pass%word@host'],
      ['SLUICE_ANSWER_STORE', 'redis://:pass%ff@host'],
      ['SLUICE_ANSWER_STORE', 'redis://:pass@host/name'],
      ['OTEL_EXPORTER_OTLP_METRICS_HEADERS', 'authorization=Bearer pass%'],
    ] as const
    for (const [name, value] of wrong) {
      const read = readSettings({}, { [name]: value })
      expect(read, value).toMatchObject({ ok: false })
      expect(JSON.stringify(read)).not.toContain('pass')
    }
  })
})

describe('drainDeadlines', () => {
  const of = (env: Record<string, string>) => {
    const read = readSettings({}, env)
    return read.ok ? drainDeadlines(read.value) : undefined
  }

  it.each([
    [{}, 0, 5_000],
    [{ CONNECTION_MIN_TERMINATION_DEADLINE: '10s' }, 10_000, 10_000],
    [{ TERMINATION_GRACE_PERIOD_SECONDS: '60' }, 0, 55_000],
    [{ TERMINATION_GRACE_PERIOD_SECONDS: '10' }, 0, 9_000],
    [{ TERMINATION_GRACE_PERIOD_SECONDS: '1' }, 0, 1_000],
    [
      { TERMINATION_GRACE_PERIOD_SECONDS: '30', CONNECTION_MIN_TERMINATION_DEADLINE: '30s' },
      29_000,
      29_000,
    ],
    [
      { TERMINATION_GRACE_PERIOD_SECONDS: '60', CONNECTION_TERMINATION_DEADLINE: '1m30s' },
      0,
      90_000,
    ],
  ])('returns the deadlines for %j', (env, minMs, maxMs) =>
    expect(of(env)).toEqual({ minMs, maxMs }),
  )
})
