/** Names of tools and prompts of several targets: prefixMode, selection and renaming, and what stays while one is down. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'

const long = 'tool_with_a_name_of_63_characters_to_which_no_prefix_can_be_add'

/** Each tool and prompt answers with the server and its own name. */
function useNamedServer(server: string, tools: readonly string[], prompts: readonly string[] = []) {
  const offered = new Set(tools)
  const one = useMcpServer({
    isStateless: true,
    offer(mcp: McpServer) {
      for (const name of offered) {
        const about = { description: `About ${name}.`, annotations: { openWorldHint: true } }
        mcp.registerTool(name, { ...about, inputSchema: { text: z.string().optional() } }, () => ({
          content: [{ type: 'text', text: `${server} ${name}` }],
        }))
      }
      for (const name of prompts) {
        mcp.registerPrompt(name, {}, () => ({
          messages: [{ role: 'user', content: { type: 'text', text: `${server} ${name}` } }],
        }))
      }
    },
  })
  return { offered, server: one }
}

const a = useNamedServer('a', ['echo', 'alpha', long], ['greet'])
const b = useNamedServer('b', ['echo', 'beta', 'a_beta', 'drop_all', 'drop_one'], ['greet', 'bye'])
const target = (name: string, { server }: typeof a, more: object = {}) => ({
  name,
  static: { host: '127.0.0.1', port: server.port },
  ...more,
})
const both = () => [target('a', a), target('b', b)]
const chosen = () =>
  target('b', b, {
    tools: {
      exclude: ['drop_*'],
      overrides: [
        {
          name: 'beta',
          as: 'find_beta',
          title: 'Find',
          description: 'Finds it.',
          annotations: { readOnlyHint: true },
        },
        { name: 'echo', as: 'a_beta' },
      ],
    },
  })
const port = await freePort()
const running = useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(port, {
      always: { targets: both() },
      conditional: { targets: both(), prefixMode: 'Conditional' },
      never: { targets: both(), prefixMode: 'Never' },
      single: { targets: [chosen()] },
      several: { targets: [target('a', a), chosen()] },
    }),
  },
}))

type Client = Awaited<ReturnType<typeof connectClient>>
const useClient = (path: string) => useFixture(() => connectClient(port, path))
const listed = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name)
const call = async (client: Client, name: string) => {
  const { content } = await client.callTool({ name })
  return (content as { text: string }[])[0]?.text
}
const short = `a_${long.slice(0, 45)}_`

describe('prefixMode', () => {
  const always = useClient('/always')
  const conditional = useClient('/conditional')
  const never = useClient('/never')

  it('[MCPBackend.prefixMode] Always keeps names within 64 characters, also in calls before a list', async () => {
    const { tools } = await always.listTools()
    const found = tools.find(({ name }) => name.startsWith(short))?.name ?? ''
    expect(found).toMatch(/^.{47}_[0-9a-f]{16}$/)
    const fresh = await connectClient(port, '/always')
    expect(await call(fresh, found)).toBe(`a ${long}`)
    // Earlier versions did not shorten names.
    expect(await call(fresh, `a_${long}`)).toBe(`a ${long}`)
    expect(await call(fresh, `${found.slice(0, -1)}x`)).toContain('not found')
    await fresh.close()
  })

  it('Conditional adds the target to names that several targets have, or that look like it', async () => {
    // A call before any list: the gateway asks who has the name.
    expect(await call(conditional, 'alpha')).toBe('a alpha')
    expect(await listed(conditional)).toEqual([
      'a_echo',
      'alpha',
      long,
      'b_echo',
      'beta',
      'b_a_beta',
      'drop_all',
      'drop_one',
    ])
    expect(await call(conditional, 'b_echo')).toBe('b echo')
    expect(await call(conditional, 'b_a_beta')).toBe('b a_beta')
    // Names with the target always work.
    expect(await call(conditional, 'b_beta')).toBe('b beta')
    await expect(call(conditional, 'echo')).rejects.toThrow(
      'Unknown tool: echo. Several servers have it: use a name of tools/list',
    )
    const { prompts } = await conditional.listPrompts()
    expect(prompts.map(({ name }) => name)).toEqual(['a_greet', 'b_greet', 'bye'])
    const { messages } = await conditional.getPrompt({ name: 'bye' })
    expect(messages[0]?.content).toMatchObject({ text: 'b bye' })
  })

  it('Never gives a name to the first target that has it, and reports the clash', async () => {
    expect(await call(never, 'echo')).toBe('a echo')
    expect(await listed(never)).toEqual([
      'echo',
      'alpha',
      long,
      'beta',
      'a_beta',
      'drop_all',
      'drop_one',
    ])
    expect(await call(never, 'a_beta')).toBe('b a_beta')
    await expect(call(never, 'b_echo')).rejects.toThrow('Unknown tool: b_echo')
    const condition = await running.condition('GatewayBackend', 'never', 'NamesUnique', 'False')
    expect(condition.message).toContain('tool "echo" of target a hides that of b')
  })

  it('leads modern clients to the same tools', async () => {
    const url = (path: string) => `http://127.0.0.1:${port}${path}`
    const text = async (path: string, name: string) => {
      const message = modernRequest('tools/call', { name, arguments: {} })
      return (await sendModern(url(path), message)).text
    }
    expect(await text('/never', 'echo')).toContain('a echo')
    expect(await text('/conditional', 'alpha')).toContain('a alpha')
    expect(await text('/conditional', 'echo')).toContain('Several servers have it')
    expect(await text('/single', 'find_beta')).toContain('b beta')
  })
})

describe('tools of a target', () => {
  const single = useClient('/single')
  const several = useClient('/several')

  it('[McpTargetSelector.tools] are renamed, described and hidden', async () => {
    const { tools } = await single.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['a_beta', 'find_beta'])
    expect(tools[0]?.description).toBe('About echo.')
    expect(tools[1]).toMatchObject({
      title: 'Find',
      description: 'Finds it.',
      annotations: { readOnlyHint: true, openWorldHint: true },
      inputSchema: { properties: { text: { type: 'string' } } },
    })
    expect(await call(single, 'find_beta')).toBe('b beta')
    expect(await call(single, 'a_beta')).toBe('b echo')
    for (const name of ['beta', 'echo', 'drop_all']) {
      await expect(call(single, name)).rejects.toThrow(`Unknown tool: ${name}`)
    }
    const names = (await listed(several)).filter((name) => name.startsWith('b_'))
    expect(names).toEqual(['b_a_beta', 'b_find_beta'])
    expect(await call(several, 'b_find_beta')).toBe('b beta')
    await expect(call(several, 'b_drop_one')).rejects.toThrow('Unknown tool: b_drop_one')
    expect(b.server.received.some(({ body }) => body.includes('"drop_'))).toBe(false)
  })
})

describe('a target that is down', () => {
  it('keeps its names, also after a restart of the gateway', async () => {
    const own = await freePort()
    const manifests = (down: boolean) =>
      mcpManifests(own, {
        mixed: {
          targets: [
            target('a', a, down ? { static: { host: '127.0.0.1', port: 1 } } : {}),
            target('b', b),
          ],
          prefixMode: 'Never',
        },
      })
    running.write('second.yaml', manifests(false).replaceAll('edge', 'other'))
    const client = await waitFor('the second listener', () =>
      connectClient(own, '/mixed').catch(() => undefined),
    )
    expect(await listed(client)).toContain('echo')
    await running.condition('GatewayBackend', 'mixed', 'NamesUnique', 'False')
    await client.close()
    running.write('second.yaml', manifests(true).replaceAll('edge', 'other'))
    await running.stop()
    await running.start()
    const again = await connectClient(own, '/mixed')
    await expect(call(again, 'echo')).rejects.toThrow('a: ')
    expect(await call(again, 'beta')).toBe('b beta')
    expect(await listed(again)).not.toContain('echo')
    await again.close()
  })
})
