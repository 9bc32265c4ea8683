import { request as httpRequest } from 'node:http'
import { describe, expect, it } from 'vitest'
import {
  type Processor,
  type ProcessorStream,
  setting,
  streamed,
} from '../support/ext-proc-server.ts'
import { sluice } from '../support/gateway.ts'
import { hostOf, inferencePool, manifest, pod } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  a,
  ask,
  b,
  chat,
  echo,
  given,
  line,
  members,
  pickers,
  port,
  running,
  stats,
} from './inference-pool-rig.ts'

interface Told {
  readonly kind: string
  readonly name: string
  readonly status: { readonly parents: { readonly conditions: Condition[] }[] }
}
interface Condition {
  readonly type: string
  readonly reason: string
}

let statuses: Promise<readonly Told[]> | undefined
/** Reasons of the conditions that an object has for its Gateway, by type; read once. */
async function told(kind: string, name: string): Promise<Record<string, string>> {
  statuses ??= sluice('status', '--log-file', running.logFile, '-o', 'json').then(
    ({ stdout }) => (JSON.parse(stdout) as { objects: Told[] }).objects,
  )
  const found = (await statuses).find((one) => one.kind === kind && one.name === name)
  const conditions = found?.status.parents.flatMap((parent) => parent.conditions) ?? []
  return Object.fromEntries(conditions.map(({ type, reason }) => [type, reason]))
}

/** Picks the first endpoint when it has the body of the request. */
const pass: Processor = ({ request }, stream) => {
  if (request.case !== 'requestBody') return
  const response = setting({ 'x-gateway-destination-endpoint': a() })
  stream.send({ response: { case: 'requestHeaders', value: { response } } })
  stream.send(streamed('requestBody', request.value.body, true))
}

const deleted = ({ metadata, ...rest }: ReturnType<typeof pod>) => ({
  ...rest,
  metadata: { ...(metadata as object), deletionTimestamp: '2026-01-01T00:00:00Z' },
})

describe('a picker that fails [inference.pool]', () => {
  it('[inference.pool] refuses the request with FailClose, and forwards it unchanged with FailOpen', async () => {
    expect(await ask('closed')).toMatchObject({ status: 503, body: 'endpoint picker failed' })
    const response = await ask('unasked')
    expect(response.status).toBe(200)
    expect(JSON.parse(response.body)).toMatchObject({ body: chat })
    expect(response.headers['x-served-by']).toBeUndefined()
    await line('unasked', 'inference.pool=default/unasked inference.pick=fail_open ')
    const picks = (pool: string, mode: string, outcome: string) =>
      `inference_picks_total{pool="default/${pool}",failure_mode="${mode}",outcome="${outcome}"} 1\n`
    await waitFor('the counts', async () => {
      const metrics = await (await fetch(`http://${stats}/metrics`)).text()
      const isFailed = metrics.includes(picks('closed', 'FailClose', 'fail_closed'))
      return isFailed && metrics.includes(picks('unasked', 'FailOpen', 'fail_open'))
    })
  })

  it('[inference.pool] forwards the request with FailOpen even if the picker fails while it has the body', async () => {
    const body = 'x'.repeat(300_000)
    given.pick = () => ({ instead: (_, stream) => stream.end(13) })
    const open = await ask('open', { body })
    expect(JSON.parse(open.body)).toMatchObject({ body })
    expect((await ask('model', { body })).status).toBe(503)
  })

  it('[inference.pool] still lets the response pass', async () => {
    given.pick = () => ({
      instead: (message, stream) => {
        if (message.request.case === 'responseHeaders') stream.end(13)
        else pass(message, stream)
      },
    })
    const response = await ask('model')
    expect(response.status).toBe(200)
    expect(JSON.parse(response.body)).toMatchObject({ body: chat })
  })

  it('[inference.pool] still lets the response pass if it ends before it with an error, and takes its response', async () => {
    const between = (end: (stream: ProcessorStream) => unknown) => {
      let stream: ProcessorStream | undefined
      given.pick = () => ({
        instead: (message, opened) => {
          stream = opened
          pass(message, opened)
        },
      })
      given.answer = (received, response) => {
        void Promise.resolve(stream && end(stream)).then(() => echo(received, response))
      }
      return ask('model')
    }
    expect(await between((stream) => stream.end(13))).toMatchObject({ status: 200 })
    const value = { status: { code: 419 } }
    const refuse = (stream: ProcessorStream) => {
      stream.send({ response: { case: 'immediateResponse', value } })
      return waitFor('the end', () => stream.isGone)
    }
    expect(await between(refuse)).toMatchObject({ status: 419 })
  })

  it('[inference.pool] lets streams pass piece by piece', async () => {
    let next = () => {}
    given.answer = (_, response) => {
      response.setHeader('content-type', 'text/event-stream')
      response.write('data: one\n\n')
      next = () => response.end('data: two\n\n')
    }
    const text = await new Promise<string>((resolve, reject) => {
      const headers = { host: hostOf('model') }
      const outgoing = httpRequest({ port, host: '127.0.0.1', method: 'POST', headers })
      outgoing.once('error', reject)
      outgoing.once('response', (response) => {
        let seen = ''
        response.on('data', (chunk: Buffer) => {
          seen += chunk.toString()
          // The second event is sent only once the first has arrived.
          if (seen === 'data: one\n\n') next()
        })
        response.once('end', () => resolve(seen))
      })
      outgoing.end(chat)
    })
    expect(text).toBe('data: one\n\ndata: two\n\n')
  })

  it('[inference.pool] is reached by TLS without verification by default', async () => {
    expect(await ask('secure')).toMatchObject({ status: 200 })
    expect(pickers.secure.asked.length).toBeGreaterThan(0)
  })

  it('[inference.pool] is verified if a policy of its Service asks for that', async () => {
    expect(await ask('verified')).toMatchObject({ status: 200 })
    expect(await ask('misnamed')).toMatchObject({ status: 503 })
  })
})

describe('pools that cannot be used [inference.pool]', () => {
  it('[inference.pool] answer 500 if a reference is missing, and report it', async () => {
    for (const name of ['missing', 'unpicked', 'nowhere']) {
      expect((await ask(name)).status, name).toBe(500)
      expect(await told('HTTPRoute', name)).toMatchObject({ ResolvedRefs: 'BackendNotFound' })
    }
    expect(await told('InferencePool', 'model')).toEqual({
      Accepted: 'Accepted',
      ResolvedRefs: 'ResolvedRefs',
    })
    const missing = { Accepted: 'Accepted', ResolvedRefs: 'InvalidExtensionRef' }
    expect(await told('InferencePool', 'missing')).toEqual(missing)
    const unpicked = { Accepted: 'EndpointPickerRefMissing', ResolvedRefs: 'ResolvedRefs' }
    expect(await told('InferencePool', 'unpicked')).toEqual(unpicked)
  })

  it('[inference.pool] answer 503 if no Pod is ready, without asking the picker', async () => {
    const before = pickers.plain.asked.length
    expect(await ask('empty')).toMatchObject({ status: 503, body: 'no healthy backends' })
    expect(pickers.plain.asked.length).toBe(before)
  })

  it('[inference.pool] follow Pods that are added, become ready and are removed', async () => {
    given.pick = () => ({ endpoints: b() })
    expect((await ask('later')).status).toBe(503)
    const become = (extra: ReturnType<typeof pod>[], status: number) => {
      running.write('pods.yaml', members(extra))
      const request = { host: hostOf('later'), method: 'POST', body: chat }
      return running.sendUntil(port, request, (response) => response.status === status)
    }
    await become([pod('late', 'later', '127.0.0.1')], 200)
    await become([pod('late', 'later', '127.0.0.1', false)], 503)
    await become([pod('late', 'later', '127.0.0.1')], 200)
    await become([pod('late', 'elsewhere', '127.0.0.1')], 503)
    // The Pod is being deleted, but still passes its readiness probe, and no other Pod is ready.
    await become([deleted(pod('late', 'later', '127.0.0.1'))], 200)
    await become([deleted(pod('late', 'later', '127.0.0.1', false))], 503)
  })

  it('[inference.pool] are refused if the API server would refuse them', async () => {
    const spec = { targetPorts: [{ number: 1 }, { number: 1 }], selector: { matchLabels: {} } }
    running.write('bad.yaml', manifest(inferencePool('bad', 'x', [], { name: 'plain' }, spec)))
    const { code, stdout, stderr } = await sluice('validate', '-f', running.manifests)
    running.remove('bad.yaml')
    expect(code).not.toBe(0)
    expect(stdout + stderr).toContain('port number must be unique')
    expect(stdout + stderr).toContain('spec.selector.matchLabels')
  })

  it('[inference.pool] are shown by explain for a request', async () => {
    const { stdout } = await sluice(
      'explain',
      'request',
      '--host',
      hostOf('model'),
      '-f',
      running.manifests,
    )
    expect(stdout).toContain('InferencePool default/model')
  })
})
