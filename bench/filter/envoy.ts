/**
 * Claim: the filter costs Envoy little. CPU of Envoy's process per request with a prompt of 1 KB and per event
 * of a stream, with five builtins on requests and answers, against the same Envoy without a filter and with its
 * own Lua filter. The Lua filter replaces five patterns in raw bytes: it sees neither escapes nor texts that are
 * split over events, and checks no digits.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manifestsFor } from '../../test/filter/manifests.ts'
import { type EnvoyFiles, envoyFilterFor, writeEnvoyFiles } from '../../test/support/envoy.ts'
import { freePorts } from '../../test/support/free-port.ts'
import { findPart } from '../../test/support/parts.ts'
import { type BenchContext, interleave, pinSelf, type Row } from '../harness.ts'
import { chat } from '../llm/setup.ts'
import { startVendorUpstream } from '../llm/upstream.ts'
import { cpuPer } from '../proxy/cost.ts'
import type { BenchUpstream } from '../proxy/event-upstream.ts'
import { askOnce, startLoad } from '../proxy/load.ts'
import { loadCore, type MeasuredProxy, startProxyProcess } from '../proxy/process.ts'

const connections = 32
const path = '/v1/chat/completions'
const builtins = ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin']

const lua = `
local patterns = {
  { '%d%d%d[- ]%d%d[- ]%d%d%d%d', '<SSN>' },
  { '%d%d%d%d[- ]?%d%d%d%d[- ]?%d%d%d%d[- ]?%d%d%d%d', '<CREDIT_CARD>' },
  { '%+?%d[%d() -]%d%d%d[%d() -]%d%d%d[- ]%d%d%d%d', '<PHONE_NUMBER>' },
  { '[%w._+-]+@[%w-]+%.[%w.-]+', '<EMAIL_ADDRESS>' },
  { '%d%d%d[- ]%d%d%d[- ]%d%d%d', '<CA_SIN>' },
}
local function mask(text)
  for _, rule in ipairs(patterns) do text = text:gsub(rule[1], rule[2]) end
  return text
end
local function replace(body)
  if body ~= nil then body:setBytes(mask(tostring(body:getBytes(0, body:length())))) end
end
function envoy_on_request(handle) replace(handle:body()) end
function envoy_on_response(handle)
  if handle:headers():get('content-type') == 'text/event-stream' then
    for chunk in handle:bodyChunks() do replace(chunk) end
  else
    replace(handle:body())
  end
end
`

const luaFilter = {
  name: 'lua',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
    default_source_code: { inline_string: lua },
  },
}

async function startWith(
  folder: string,
  name: string,
  upstream: number,
  filters: readonly object[],
) {
  const part = findPart('envoy')
  if (!part.found) throw new Error(part.reason)
  const own = join(folder, name)
  mkdirSync(own)
  const { http, admin } = await freePorts('http', 'admin')
  const files: EnvoyFiles = { http, admin, upstream, filters }
  const config = writeEnvoyFiles(own, files)
  const options = ['--concurrency', '1', '--use-dynamic-base-id', '--log-level', 'error']
  return startProxyProcess({
    name,
    version: '1.40.0',
    port: http,
    command: [join(part.path, 'envoy'), '-c', config, ...options],
  })
}

function costOf(proxy: MeasuredProxy, stream: boolean, upstream: BenchUpstream, seconds: number) {
  const scenario = chat(path, { stream })
  const load = startLoad(proxy.port, scenario, connections)
  return cpuPer(stream ? upstream.events : load.responses, proxy, load, upstream, seconds)
}

function rowsOf(samples: Readonly<Record<string, number[]>>): Row[] {
  const { plain = [], filter = [], scripted = [] } = samples
  const { plainStream = [], filterStream = [], scriptedStream = [] } = samples
  const none = (of: number[]) => ({ name: 'Envoy without a filter', samples: of })
  const other = (of: number[]) => ({ name: "Envoy's Lua filter", samples: of })
  const unit = 'µs'
  return [
    { id: 'filter.chat.plain', unit, own: filter, peer: none(plain) },
    { id: 'filter.chat.lua', unit, own: filter, peer: other(scripted) },
    { id: 'filter.stream.plain', unit, own: filterStream, peer: none(plainStream) },
    { id: 'filter.stream.lua', unit, own: filterStream, peer: other(scriptedStream) },
  ]
}

export default async function filterBench({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startVendorUpstream()
  const running: MeasuredProxy[] = []
  try {
    const guards = [{ regex: { builtins } }]
    const promptGuard = { request: guards, response: guards }
    const filter = await envoyFilterFor(folder, manifestsFor({ ai: { promptGuard } }))
    const start = async (name: string, filters: readonly object[]) => {
      const proxy = await startWith(folder, name, upstream.port, filters)
      running.push(proxy)
      const head = await askOnce(proxy.port, chat(path).request)
      if (!head.startsWith('HTTP/1.1 200')) throw new Error(`${name} does not serve:\n${head}`)
      return proxy
    }
    const proxies = {
      plain: await start('envoy', []),
      filter: await start('envoy-filter', [filter]),
      scripted: await start('envoy-lua', [luaFilter]),
    }
    const seconds = quick ? 1 : 3
    const entries = Object.entries(proxies).flatMap(([name, proxy]) => [
      [name, () => costOf(proxy, false, upstream, seconds)] as const,
      [`${name}Stream`, () => costOf(proxy, true, upstream, seconds)] as const,
    ])
    return rowsOf(await interleave(rounds, Object.fromEntries(entries)))
  } finally {
    for (const proxy of running) await proxy.stop()
    await upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
