import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sluice } from '../support/gateway.ts'

const folder = join(import.meta.dirname, '../../examples/policy-levels')
const request = (...args: string[]) =>
  sluice('explain', 'request', '--host', 'any.example', ...args)

interface Answer {
  ways: {
    port: number
    listener: { name: string }
    rule?: { route: { name: string }; name?: string; origin: { generation: number } }
    fields: {
      section: string
      field: string
      policies: {
        policy: { name: string }
        attachedTo: string
        state: string
        origin: { generation: number; event: number }
      }[]
    }[]
  }[]
}

async function answer(...args: string[]): Promise<Answer> {
  return JSON.parse((await request(...args, '-o', 'json')).stdout)
}

describe('sluice explain request', () => {
  it('names the rule, and for each field the policy that is in force and those it overrides', async () => {
    const { ways } = await answer('--path', '/shop/news?page=2', '--port', '8081', '-f', folder)
    expect(ways).toHaveLength(1)
    const [way] = ways
    expect(way?.listener.name).toBe('partners')
    expect(way?.rule).toMatchObject({ route: { name: 'shop' }, name: 'news' })
    const modifiers = way?.fields.find(({ field }) => field === 'headerModifiers')
    const states = modifiers?.policies.map(({ policy, attachedTo, state }) => [
      policy.name,
      attachedTo,
      state,
    ])
    expect(states).toEqual([
      ['on-gateway', 'Gateway default/edge', 'overridden'],
      ['on-listener', 'Gateway default/edge#partners', 'overridden'],
      ['on-route', 'HTTPRoute default/shop', 'overridden'],
      ['on-rule', 'HTTPRoute default/shop#news', 'in force'],
    ])
    const direct = way?.fields.find(({ field }) => field === 'directResponse')
    expect(direct?.policies).toMatchObject([{ policy: { name: 'on-gateway' }, state: 'in force' }])
  })

  it('answers for every port, with the generation and the event of each policy', async () => {
    const log = ['--log-file', join(folder, 'recorded.jsonl')]
    const { ways } = await answer('--path', '/plain', ...log)
    expect(ways.map(({ port, listener }) => [port, listener.name])).toEqual([
      [8080, 'public'],
      [8081, 'partners'],
    ])
    const [policy] = ways[0]?.fields.find(({ field }) => field === 'directResponse')?.policies ?? []
    expect(policy?.origin.generation).toBe(1)
    const { stdout } = await sluice('log', ...log)
    const line = stdout.split('\n').find((text) => text.startsWith(`${policy?.origin.event} `))
    expect(line).toContain('GatewayPolicy default on-gateway')
  })

  it('exits with 1 if no route or no listener matches', async () => {
    const { code, stdout } = await request('--path', '/nothing', '-f', folder)
    expect(code).toBe(1)
    expect(stdout).toContain('no route matches: 404')
    const none = await request('--port', '9999', '-f', folder)
    expect(none.code).toBe(1)
    expect(none.stdout).toContain('no listener takes the host any.example')
  })

  it.each([
    ['a path without slash', ['--path', 'shop'], '--path shop'],
    ['a header without colon', ['--header', 'x'], '--header x'],
    ['an invalid method', ['--method', 'G T'], '--method G T'],
    ['an invalid host', ['--host', 'a b'], '--host a b'],
    ['an invalid port', ['--port', 'http'], '--port http'],
    ['an unknown path setting', ['--ambiguous-paths', 'no'], '--ambiguous-paths no'],
  ])('refuses %s as a usage error', async (_, args, named) => {
    const { code, stderr } = await request(...args, '-f', folder)
    expect(code).toBe(2)
    expect(stderr).toContain(named)
  })

  it('uses the path as it was sent by default', async () => {
    const asSent = await request('--path', '//shop/../shop', '-f', folder)
    const kept = await request(
      '--path',
      '//shop/../shop',
      '--ambiguous-paths',
      'keep',
      '-f',
      folder,
    )
    expect(asSent.stdout).not.toContain('normalized')
    expect(kept).toEqual(asSent)
  })

  it('uses the normalized path if the setting is normalize, as the proxy does', async () => {
    const args = ['--path', '//x/..\\%73hop/news?page=2', '--ambiguous-paths', 'normalize']
    const { code, stdout } = await request(...args, '-f', folder)
    expect(code).toBe(0)
    expect(stdout).toContain('is normalized to /shop/news\n')
    expect(stdout).toContain('(news) of HTTPRoute default/shop')
    const json = JSON.parse((await request(...args, '-f', folder, '-o', 'json')).stdout)
    expect(json.request).toMatchObject({ path: '/shop/news', query: 'page=2' })
  })

  it.each([
    ['refuse', '//shop'],
    ['refuse', '/shop%2Fnews'],
    ['normalize', '/shop/..;a/news'],
  ])(
    'exits with 1 and prints the 400 of the proxy if the setting %s refuses %s',
    async (rule, path) => {
      const args = ['--path', path, '--ambiguous-paths', rule, '-f', folder]
      const { code, stdout } = await request(...args)
      expect(code).toBe(1)
      expect(stdout).toBe('answers 400: ambiguous path (ambiguous_path)\n')
      const json = await request(...args, '-o', 'json')
      expect(json.code).toBe(1)
      expect(JSON.parse(json.stdout)).toEqual({
        request: expect.objectContaining({ path }),
        refused: { status: 400, code: 'ambiguous_path', message: 'ambiguous path' },
        ways: [],
      })
    },
  )
})
