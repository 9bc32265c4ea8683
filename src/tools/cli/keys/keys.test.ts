import { hash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { sluice } from '../../../../test/support/gateway.ts'
import { validateObject } from '../../../control/api/validate.ts'
import { UsageError } from '../shared/output.ts'
import { importKeys } from './import-keys.ts'
import { createKey, deleteKey, listKeys, rotateKey, setDisabled } from './keys.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keys-'))
  file = join(folder, 'keys.yaml')
})
afterEach(() => rmSync(folder, { recursive: true }))

const common = () => ({ file, configMap: 'api-keys', label: ['a=b'], prefix: 'sk-' })
const create = (name: string, more: object = {}) =>
  createKey(name, { ...common(), ...more }).text()[0] ?? ''
const sha = (key: string) => `sha256:${hash('sha256', key)}`
const entryOf = (name: string) => JSON.parse(parse(readFileSync(file, 'utf8')).data[name])
const listed = () => listKeys(file).json as readonly { name: string; [member: string]: unknown }[]

describe('sluice keys', () => {
  it('creates a file with a ConfigMap, and writes only the hash of a key', () => {
    const key = create('ann', {
      namespace: 'web',
      owner: 'Ann',
      team: 'search',
      metadata: ['plan=gold=x'],
      model: ['gpt-*'],
      route: ['web/chat', 'search/*'],
      expires: '2999-01-31',
    })
    expect(key).toMatch(/^sk-[\w-]{43}$/)
    const text = readFileSync(file, 'utf8')
    expect(text).not.toContain(key)
    expect(parse(text).metadata).toEqual({ name: 'api-keys', namespace: 'web', labels: { a: 'b' } })
    expect(entryOf('ann')).toEqual({
      keyHash: sha(key),
      metadata: { owner: 'Ann', team: 'search', plan: 'gold=x' },
      expiresAt: '2999-01-31T00:00:00.000Z',
      allowedModels: ['gpt-*'],
      allowedRoutes: ['web/chat', 'search/*'],
    })
    expect(listKeys(file).text().join()).toContain('web/chat, search/*')
    expect(() => create('bob', { route: ['chat'] })).toThrow('key bob has "allowedRoutes" that is')
  })

  it('keeps other documents, comments and keys of the file', () => {
    writeFileSync(
      file,
      '# first\nkind: Service\n---\n# keys\nkind: ConfigMap\ndata:\n  # of Ann\n  ann: "x"\n',
    )
    create('bob')
    const text = readFileSync(file, 'utf8')
    for (const part of ['# first', '# keys', '# of Ann']) expect(text).toContain(part)
    expect(parseAllDocuments(text)).toHaveLength(2)
    expect(listed().map(({ name }) => name)).toEqual(['ann', 'bob'])
  })

  it('rotates a key: both are accepted until the overlap ends', () => {
    const before = create('ann', { team: 'search' })
    const after = rotateKey('ann', { file, overlap: '2h', prefix: 'sk-' }).text()[0] ?? ''
    const { previous, ...entry } = entryOf('ann')
    expect(entry).toEqual({ keyHash: sha(after), metadata: { team: 'search' } })
    expect(previous.keyHash).toBe(sha(before))
    const left = Date.parse(previous.expiresAt) - Date.now()
    expect(left / 3_600_000).toBeCloseTo(2, 1)
  })

  it('keeps every previous key until its own overlap ends', () => {
    const first = create('ann')
    const second = rotateKey('ann', { file, overlap: '2h', prefix: 'sk-' }).text()[0] ?? ''
    rotateKey('ann', { file, overlap: '1h', prefix: 'sk-' })
    const previous = entryOf('ann').previous as { keyHash: string }[]
    expect(previous.map(({ keyHash }) => keyHash)).toEqual([sha(first), sha(second)])
    rotateKey('ann', { file, overlap: '0m', prefix: 'sk-' })
    expect(entryOf('ann').previous).toHaveLength(2)
    expect(listKeys(file).text().join()).toContain('active, previous key until')
    for (let count = 2; count < 8; count++) rotateKey('ann', { file, overlap: '1h', prefix: 'sk-' })
    const rotate = () => rotateKey('ann', { file, overlap: '1h', prefix: 'sk-' })
    expect(rotate).toThrow('8 previous keys')
  })

  it('gives an expired key a new end when it is rotated', () => {
    create('ann', { expires: '1d' })
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace(/expiresAt":"\d{4}/, 'expiresAt":"2020'))
    expect(() => rotateKey('ann', { file, overlap: '1h', prefix: 'sk-' })).toThrow('--expires 90d')
    rotateKey('ann', { file, overlap: '1h', prefix: 'sk-', expires: '90d' })
    expect(Date.parse(entryOf('ann').expiresAt)).toBeGreaterThan(Date.now())
  })

  it('changes the file that a link leads to, and keeps its mode, its line breaks and its form', () => {
    const link = join(folder, 'link.yaml')
    symlinkSync('keys.yaml', link)
    createKey('ann', { ...common(), file: link })
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(listed().map(({ name }) => name)).toEqual(['ann'])
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('\n', '\r\n'))
    chmodSync(file, 0o600)
    create('bob')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toMatch(/[^\r]\n/)
    writeFileSync(file, JSON.stringify({ kind: 'ConfigMap', data: {} }))
    create('eve')
    expect(Object.keys(JSON.parse(readFileSync(file, 'utf8')).data)).toEqual(['eve'])
  })

  it('loses no change if several commands run at once', async () => {
    create('victim')
    const run = (...args: string[]) => sluice('keys', ...args, '--file', file)
    const results = await Promise.all([
      run('disable', 'victim'),
      ...['x', 'y', 'z'].map((name) => run('create', name)),
    ])
    expect(results.map(({ code, stderr }) => [code, stderr])).toEqual(Array(4).fill([0, '']))
    const entries = listed().map(({ name, disabled }) => [name, disabled])
    expect(Object.fromEntries(entries)).toEqual({
      victim: true,
      x: undefined,
      y: undefined,
      z: undefined,
    })
  })

  it('disables, enables, lists and deletes a key', () => {
    create('ann', { owner: 'Ann' })
    const state = () => listKeys(file).text().join('\n')
    setDisabled('ann', file, true)
    expect(state()).toMatch(/^NAME .*\nann +disabled +Ann/)
    setDisabled('ann', file, false)
    expect(state()).toMatch(/\nann +active +Ann +all +all +never +[0-9a-f]{8}$/)
    deleteKey('ann', file)
    expect(state()).toBe(`${file} has no keys`)
  })

  it('lists entries that are not usable, with exit code 1', () => {
    create('ann')
    writeFileSync(file, `${readFileSync(file, 'utf8')}  clear: sk-123\n  odd: '{"keyHash":"x"}'\n`)
    const { exitCode } = listKeys(file)
    expect([exitCode, listed().map(({ problem }) => problem)]).toEqual([
      1,
      [
        undefined,
        expect.stringContaining('has the key itself'),
        expect.stringContaining('"keyHash"'),
      ],
    ])
    expect(listKeys(file).text().join()).not.toContain('sk-123')
  })

  it.each([
    ['a name that an entry cannot have', () => create('a b'), 'a b: a key'],
    ['a name that is taken', () => create('ann') && create('ann'), 'sluice keys rotate'],
    [
      'an end that is no time',
      () => create('ann', { expires: 'soon' }),
      '--expires soon: expected',
    ],
    ['an end that has passed', () => create('ann', { expires: '2020-01-01' }), 'has passed'],
    ['a day that does not exist', () => create('ann', { expires: '2999-02-30' }), 'expected 90d'],
    ['a prefix with a space', () => create('ann', { prefix: 'a b' }), '--prefix'],
    ['a name that Kubernetes refuses', () => create('..x'), '..x: a key'],
    ['standard input', () => create('ann', { file: '-' }), '--file -'],
    ['metadata without a value', () => create('ann', { metadata: ['x'] }), '--metadata x'],
    ['a model with a star inside', () => create('ann', { model: ['a*b'] }), 'allowedModels'],
    ['a file that does not exist', () => listKeys(file), 'no such file'],
    [
      'a key that does not exist',
      () => create('a') && setDisabled('b', file, true),
      'does not exist',
    ],
  ])('refuses %s', (_, act, text) => {
    expect(act).toThrow(text)
  })

  it('refuses a file that has no ConfigMap, or two, and leaves it as it was', () => {
    for (const text of [
      'kind: Secret\n',
      'kind: ConfigMap\n---\nkind: ConfigMap\n',
      'a: [',
      'kind: ConfigMap\ndata: []\n',
      'kind: ConfigMap\ndata: x\n',
    ]) {
      writeFileSync(file, text)
      expect(() => create('ann')).toThrow(file)
      expect(readFileSync(file, 'utf8')).toBe(text)
    }
  })
})

describe('sluice keys import --from litellm', () => {
  const from = (rows: unknown, more: object = {}) => {
    const path = join(folder, 'export.json')
    writeFileSync(path, JSON.stringify(rows))
    const told: string[] = []
    const output = { print: () => {}, report: (text: string) => told.push(text) }
    const { exitCode } = importKeys(
      path,
      { ...common(), budgetTarget: 'Gateway/gateway', ...more },
      output,
    )
    return { exitCode, told: told.map((text) => text.replace(`${path}: `, '')) }
  }
  const token = (key: string) => hash('sha256', key)

  it('adds keys with their hash, owner, team, models and end', () => {
    const row = {
      token: token('sk-old'),
      key_alias: 'Ann, laptop',
      user_id: 'ann',
      team_id: 'search',
      models: ['gpt-4o', 'claude-*'],
      expires: '2999-01-31T00:00:00',
      blocked: true,
      max_budget: null,
      metadata: { plan: 'gold' },
    }
    const free = { token: token('sk-free'), models: ['all-proxy-models'], metadata: {} }
    expect(from({ keys: [row, free] })).toEqual({ told: [] })
    expect(entryOf('Ann--laptop')).toEqual({
      keyHash: sha('sk-old'),
      metadata: { plan: 'gold', owner: 'ann', team: 'search' },
      expiresAt: '2999-01-31T00:00:00.000Z',
      disabled: true,
      allowedModels: ['gpt-4o', 'claude-*'],
    })
    expect(listed()[1]).toMatchObject({ name: `key-${token('sk-free').slice(0, 12)}` })
  })

  it('does not add a key that would lose its budget, unless that is allowed', () => {
    const row = { token: token('a'), key_alias: 'a', max_budget: 5, rpm_limit: 3 }
    expect(from([row])).toEqual({
      exitCode: 1,
      told: [
        'key 1: a: rpm_limit, max_budget cannot be imported; --budgets FILE writes max_budget as a GatewayBudget. To add the key without it, use --allow-loss',
      ],
    })
    expect(from([row], { allowLoss: true })).toEqual({
      exitCode: 1,
      told: ['key 1: a: rpm_limit, max_budget is not imported'],
    })
    expect(listed().map(({ name }) => name)).toEqual(['a'])
  })

  it.each([
    [{ model_rpm_limit: { a: 1 } }, 'model_rpm_limit'],
    [
      { metadata: { model_tpm_limit: { a: 1 }, guardrails: ['x'] } },
      'metadata.model_tpm_limit, metadata.guardrails',
    ],
    [{ allowed_ips: ['10.0.0.1'] }, 'allowed_ips'],
    [{ object_permission_id: 'x' }, 'object_permission_id'],
    [{ litellm_budget_table: { max_budget: 1 } }, 'litellm_budget_table'],
    [{ member_of_the_future: true }, 'member_of_the_future'],
    [{ models: [], team_id: 'search' }, 'the models of its team'],
    [{ models: ['all-team-models'] }, 'the models of its team'],
  ])('reports that a key would lose %j', (more, lost) => {
    const { exitCode, told } = from([{ token: token('a'), key_alias: 'a', models: ['m'], ...more }])
    expect([exitCode, told]).toEqual([
      1,
      [expect.stringContaining(`a: ${lost} cannot be imported`)],
    ])
  })

  it('writes budgets to a file of their own, one object for each period', () => {
    const rows = [
      { key_alias: 'a', max_budget: 5, budget_duration: '30d' },
      { key_alias: 'b', max_budget: 0.25, budget_duration: '1mo' },
      { key_alias: 'c', max_budget: 1, budget_duration: '24h', metadata: { id: 'carol' } },
      { key_alias: 'd', max_budget: 1, budget_duration: '36h' },
      { key_alias: 'e', max_budget: 1 },
      { key_alias: 'f' },
    ].map((row) => ({ token: token(row.key_alias), models: ['m'], ...row }))
    const budgets = join(folder, 'budgets.yaml')
    const { exitCode, told } = from(rows, { budgets, budgetTarget: 'HTTPRoute/chat' })
    expect(exitCode).toBe(1)
    expect(told).toEqual([
      expect.stringMatching(/^key 4: d: max_budget is renewed after 36h; choose .* cannot be/),
      expect.stringMatching(/^key 5: e: max_budget is never renewed; choose .* cannot be/),
    ])
    const written = parseAllDocuments(readFileSync(budgets, 'utf8')).map((one) => one.toJS())
    const target = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'chat' }
    const common = { targetRefs: [target], each: 'apiKey.id', unpriced: 'CountAs' }
    expect(written.map(({ spec }) => spec)).toEqual([
      {
        ...common,
        when: 'apiKey != null && apiKey.id in ["a","b"]',
        limit: { unit: 'USD', amount: '5' },
        overrides: [{ value: 'b', amount: '0.25' }],
        window: { type: 'Calendar', unit: 'Month' },
        unpricedAmount: '0',
      },
      {
        ...common,
        when: 'apiKey != null && apiKey.id in ["carol"]',
        limit: { unit: 'USD', amount: '1' },
        window: { type: 'Calendar', unit: 'Day' },
        unpricedAmount: '0',
      },
    ])
    for (const manifest of written) expect(validateObject(manifest).ok).toBe(true)
    expect(() => from([], { budgets })).toThrow('exists; choose another file')
    const odd = { budgets: `${budgets}2`, budgetTarget: 'Service/x' }
    expect(() => from([], odd)).toThrow('expected Gateway/NAME or HTTPRoute/NAME')
  })

  it('gives a key without models none', () => {
    from([{ token: token('a'), key_alias: 'a', models: ['no-default-models'] }])
    expect(entryOf('a').allowedModels).toEqual([])
  })

  it('refuses one page of several', () => {
    const keys = [{ token: token('a'), models: ['m'] }]
    expect(() => from({ keys, total_pages: 3, total_count: 3 })).toThrow('one page of 3')
    expect(() => from({ keys, total_count: 2 })).toThrow('one page of several')
    expect(existsSync(file)).toBe(false)
  })

  it('reports rows that are not keys, and two keys with one name', () => {
    const rows = [
      { token: 'sk-clear', key_alias: 'x' },
      7,
      { token: token('a'), key_alias: 'a b' },
      { token: token('b'), key_alias: 'a-b' },
      { token: token('c'), key_alias: 'c', expires: 'never' },
    ]
    const { exitCode, told } = from(rows)
    expect(exitCode).toBe(1)
    expect(told).toEqual([
      expect.stringContaining('key 1: it has no "token"'),
      'key 2: it is not an object',
      'key 4: key a-b already exists',
      expect.stringContaining('key 5: key c has an "expiresAt"'),
    ])
    expect(told.join()).not.toContain('sk-clear')
  })

  it('leaves the file as it was if the new key cannot be given to the user', () => {
    const fail = () => {
      throw new UsageError('no room')
    }
    expect(() => createKey('ann', common(), fail)).toThrow('no room')
    expect(existsSync(file)).toBe(false)
    create('ann')
    const before = readFileSync(file, 'utf8')
    const rotate = () => rotateKey('ann', { file, overlap: '1h', prefix: 'sk-' }, fail)
    expect(rotate).toThrow('no room')
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  it('refuses times without an offset, and a name that no manifest may have', () => {
    const noOffset = () => create('ann', { expires: '2999-01-31T00:00:00' })
    expect(noOffset).toThrow('a time such as')
    expect(() => create('__proto__')).toThrow('is not __proto__')
  })

  it('shows a line break in a cell as an escape, so that no text looks like another key', () => {
    create('ann', { team: 'x\nbob active' })
    expect(listKeys(file).text().join('\n').split('\n')).toHaveLength(2)
  })
})
