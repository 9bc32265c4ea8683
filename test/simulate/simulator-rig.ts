/** Simulators of manifests, through the real fold. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { VersionedResource } from '../../src/ground/model/resources.ts'
import type { RecordedDecision, RecordedStep } from '../../src/past/decisions/record.ts'
import {
  requestOf,
  type SimulatedRequest,
  type Simulation,
  Simulator,
  type SimulatorOptions,
} from '../../src/past/simulate/index.ts'
import { foldRecording, readRecording } from '../../src/tools/cli/recording/recording.ts'
import { gateway, type Manifest, manifest } from '../support/manifests.ts'

export const port = 8080

/** The resources that manifests result in. With `isLog`, values of secrets are left out, as in a log. */
export async function resourcesOf(
  objects: readonly Manifest[],
  { isLog = false } = {},
): Promise<readonly VersionedResource[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-simulate-'))
  try {
    const file = join(folder, 'all.yaml')
    writeFileSync(file, manifest(...objects))
    const problems: string[] = []
    const recording = await readRecording({ file: [file] }, (text) => problems.push(text))
    if (problems.length > 0) throw new Error(problems.join('\n'))
    const resources = (await foldRecording(recording)).resources()
    return isLog ? resources : [...recording.secrets, ...resources]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Simulates one request after another on a gateway with one HTTP listener and these objects. */
export async function simulatorOf(
  objects: readonly Manifest[],
  options: SimulatorOptions & { readonly isLog?: boolean } = {},
): Promise<Simulator> {
  return Simulator.open(await resourcesOf([gateway(port), ...objects], options), options)
}

export async function simulate(
  objects: readonly Manifest[],
  request: Partial<SimulatedRequest> = {},
  options: SimulatorOptions & { readonly isLog?: boolean } = {},
): Promise<Simulation> {
  const simulator = await simulatorOf(objects, options)
  try {
    return await simulator.simulate(aRequest(request))
  } finally {
    simulator.close()
  }
}

export function aRequest(request: Partial<SimulatedRequest> = {}): SimulatedRequest {
  const source = { address: '192.0.2.7', port: 4242 }
  return {
    method: 'GET',
    host: 'app.example.com',
    path: '/',
    scheme: 'http',
    port,
    source,
    headers: [],
    ...request,
  }
}

/** Names and values of header fields. */
export const fields = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers).map(([name, value]) => ({ name, value }))

/** A record of a request whose header values are unknown. */
export function recorded(
  steps: readonly Pick<RecordedStep, 'step' | 'config' | 'verdict'>[],
  parts: {
    readonly response?: Partial<RecordedDecision['response']>
    readonly request?: Partial<RecordedDecision['request']>
    readonly route?: RecordedDecision['route']
  } = {},
): SimulatedRequest {
  const request = {
    method: 'GET',
    host: 'app.example.com',
    path: '/',
    protocol: 'HTTP/1.1',
    scheme: 'http',
    port,
    source: '192.0.2.7:4242',
    headers: [],
    digestKey: '',
    ...parts.request,
  } as const
  const response = {
    status: 200,
    reason: 'Upstream',
    ending: 'complete',
    requestBytes: 0,
    responseBytes: 0,
    durationMs: 1,
    ...parts.response,
  }
  return requestOf({
    id: 'id',
    time: '2026-01-01T00:00:00.000Z',
    proxy: 'local',
    worker: 0,
    position: 1,
    request,
    route: parts.route ?? {},
    steps: steps.map((step) => ({ from: [], notes: [], ...step })),
    attempts: [],
    details: {},
    response,
  })
}
