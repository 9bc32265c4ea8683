/**
 * Coding agents through the gateway: each reads a file with a tool and says what it found. The simulators refuse the
 * same requests as the vendors, and no address in prompts or files reaches them.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  AgentFolder,
  type AgentName,
  agents,
  isIsolated,
  noteAddress,
  noteCode,
  noteFile,
} from '../support/agents.ts'
import { describeWithParts } from '../support/parts.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import type { Answer, Vendor } from '../support/vendors/vendor.ts'
import { calls, completes, type ToolCall } from '../support/vendors/vendor-a.ts'
import { callsC, says } from '../support/vendors/vendor-c.ts'
import { callsD, generates } from '../support/vendors/vendor-d.ts'
import { converses } from '../support/vendors/vendor-f.ts'

/** Agents need some seconds; a loaded machine needs many more. */
const limitMs = 120_000
const email = { regex: { builtins: ['Email'] } }
const guarded = (key = 'gateway-key') => ({
  auth: { key },
  ai: { promptGuard: { request: [email], response: [email] } },
})

const fleet = useFleet(({ at, region }) => [
  reached('a', { vendorA: {}, ...at('a') }, guarded()),
  reached('c', { vendorC: {}, ...at('c') }, guarded()),
  reached('c-alias', { vendorC: { model: 'claude-other' }, ...at('c') }, guarded()),
  reached('d', { vendorD: { model: 'gemini-2.5-pro' }, ...at('d') }, guarded('AIzaKey')),
  reached(
    'f',
    { vendorF: { region, model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0' }, ...at('f') },
    guarded(),
  ),
  reached('chat', { custom: { formats: [{ type: 'Completions' }] }, ...at('a') }, guarded()),
  reached('d-any', { vendorD: {}, ...at('d') }, guarded('AIzaKey')),
  reached('a-pinned', { vendorA: { model: 'gpt-5.1' }, ...at('a') }, guarded()),
  reached('c-pinned', { vendorC: { model: 'claude-sonnet-4-5' }, ...at('c') }, guarded()),
  reached('f-any', { vendorF: { region }, ...at('f') }, guarded()),
])

const last = 'The code is done.'

type Letter = 'a' | 'c' | 'd' | 'f'
const speak: Readonly<
  Record<
    Letter,
    { readonly call: (call: ToolCall) => Answer; readonly say: (text: string) => Answer }
  >
> = {
  a: { call: calls, say: completes },
  c: { call: callsC, say: says },
  d: { call: callsD, say: generates },
  f: { call: (call) => converses({ call }), say: (text) => converses({ texts: [text] }) },
}

/** The vendor calls the tool until it has got the content of the file. Requests without tools are for titles. */
function script(vendor: Vendor, letter: Letter, call: ToolCall): void {
  const { call: callTool, say } = speak[letter]
  vendor.answer = (request, response) => {
    const hasTools = request.text.includes(`"${call.name}"`)
    const hasRead = request.text.includes(noteCode)
    const answer = hasTools && !hasRead ? callTool(call) : say(hasRead ? last : 'A title')
    answer(request, response)
  }
}

interface Way {
  readonly agent: AgentName
  readonly backend: string
  readonly vendor: Letter
  readonly model: string
  /** The tool, if it is not the usual one of the agent. */
  readonly call?: Omit<ToolCall, 'id'>
}

/** Runs code that calls the tools of Codex; its namespace is a part of its name at other vendors. */
const exec = {
  name: 'functions__exec',
  input: {
    input: `const read = await tools.exec_command({ cmd: "cat ${noteFile}" }); text(read.output)`,
  },
}

const way = (agent: AgentName, model: string, ...backends: readonly [string, Letter][]): Way[] =>
  backends.map(([backend, vendor]) => ({ agent, model, backend, vendor }))

const ways: readonly Way[] = [
  ...way(
    'claude',
    'claude-sonnet-4-5',
    ['c', 'c'],
    ['c-alias', 'c'],
    ['a', 'a'],
    ['d', 'd'],
    ['f', 'f'],
  ),
  ...way('codex', 'gpt-5.5', ['a', 'a'], ['chat', 'a'], ['c', 'c'], ['d', 'd'], ['f', 'f']),
  { agent: 'codex', model: 'gpt-5.6-sol', backend: 'c', vendor: 'c', call: exec },
  ...way(
    'gemini',
    'gemini-2.5-flash',
    ['d-any', 'd'],
    ['a-pinned', 'a'],
    ['c-pinned', 'c'],
    ['f', 'f'],
  ),
  ...way(
    'claude-bedrock',
    'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    ['f-any', 'f'],
    ['c-pinned', 'c'],
    ['a-pinned', 'a'],
  ),
  ...way('opencode', 'anthropic/claude-sonnet-4-5', ['c', 'c']),
  ...way('opencode', 'openai/gpt-5.1', ['a', 'a']),
]

let folder: AgentFolder
beforeEach(() => {
  fleet.forget()
  folder = new AgentFolder()
})
afterEach(() => folder.dispose())

for (const name of Object.keys(agents) as AgentName[]) {
  describeWithParts([agents[name].part], `${name} through the gateway`, () => {
    describe.each(ways.filter(({ agent }) => agent === name))('to $backend with $model', (one) => {
      it('reads a file with a tool, and the vendor refuses nothing', {
        timeout: limitMs,
      }, async () => {
        const { agent, backend, vendor, model } = one
        const call = one.call ?? agents[agent].call(folder.work)
        script(fleet.vendors[vendor], vendor, { id: 'toolu_1', ...call })
        const { code, text, outside } = await folder.run(agent, model, fleet.base(backend), limitMs)
        const { calls: sent } = fleet.vendors[vendor]
        const paths = sent.map(({ path }) => path)
        expect([code, paths, text]).toEqual([0, paths, expect.stringContaining(last)])
        expect(outside).toEqual(isIsolated ? [] : undefined)
        expect(sent.some((request) => request.text.includes(noteCode))).toBe(true)
        // Claude Code sends its thinking back only if the response has the model that it asked for.
        if (agent === 'claude' && vendor === 'c') expect(sent.at(-1)?.text).toContain('Hm, so.')
        for (const request of sent) expect(request.text).not.toContain(noteAddress)
      })
    })
  })
}
