import { linkTo, place } from '../../state/location.ts'
import { useServed } from '../../state/served.ts'
import { EventLink } from '../../ui/links.tsx'
import { Offered } from '../../ui/offered.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { NamedObject, StepTable } from '../../ui/steps.tsx'
import { Time } from '../../ui/times.tsx'

/** What `sluice explain request --id` prints. */
interface Explained {
  readonly request: {
    readonly time: string
    readonly method: string
    readonly host: string
    readonly path: string
    readonly query?: string
    readonly scheme: string
    readonly port: number
    readonly source: string
    readonly headers: readonly { readonly name: string; readonly value?: string }[]
  }
  readonly position: number
  readonly problem?: string
  readonly listener?: Version & { readonly name: string }
  readonly route?: Version & { readonly rule?: number }
  readonly steps: readonly (Partial<Version> & {
    readonly step: string
    readonly verdict: string
    readonly reason?: string
    readonly from?: readonly Version[]
  })[]
  readonly attempts: readonly { readonly endpoint: string; readonly failure: string }[]
  readonly backend?: { readonly name: string; readonly endpoint?: string }
  readonly details: Readonly<Record<string, string | number>>
  readonly response: {
    readonly status: number
    readonly reason: string
    readonly error?: string
    readonly detail?: string
    readonly durationMs: number
  }
  readonly change?: string
}

interface Version {
  readonly object: string
  readonly generation?: number
  readonly event?: number
}

/** One recorded request: its way, step by step, in the configuration of its moment. */
export function RequestPage() {
  const id = place.value.rest[0] ?? ''
  return (
    <Offered offer="commands" otherwise="Requests of an export cannot be explained here.">
      <ExplainedRequest id={id} />
    </Offered>
  )
}

function ExplainedRequest({ id }: { id: string }) {
  const shown = useServed(id, async (server, signal) => {
    const { exitCode, output, reports } = await server.run('explain-request', { id }, signal)
    if (exitCode > 1 || output === '') throw new Error(reports.join(' ') || 'It has no record.')
    return { explained: JSON.parse(output) as Explained }
  })
  return (
    <Content shown={shown} what={`request ${id}`}>
      {(loaded) => <Explanation id={id} {...loaded} />}
    </Content>
  )
}

interface ExplanationProps {
  readonly id: string
  readonly explained: Explained
}

function Explanation({ id, explained }: ExplanationProps) {
  const { request, response, position, problem, listener, route, steps, change } = explained
  const address = `${request.scheme}://${request.host}${request.path}`
  return (
    <article>
      <header class="title">
        <h1>
          {request.method} {request.host}
          {request.path}
        </h1>
        <strong class={response.status >= 400 ? 'bad' : ''}>{response.status}</strong>
        <Time time={request.time} />
        <span class="quiet">
          decided in the configuration of <EventLink position={position} />
        </span>
        <a class="button" href={linkTo('try', [], { curl: curlOf(explained) }, position)}>
          Try it
        </a>
      </header>
      {problem !== undefined && <p class="notice">{problem}</p>}
      {change !== undefined && (
        <section class="card" aria-labelledby="change">
          <h2 id="change">For another outcome</h2>
          <p>{change}</p>
        </section>
      )}
      <section class="card" aria-labelledby="way">
        <h2 id="way">Its way</h2>
        <p>
          {listener !== undefined && (
            <>
              Listener {listener.name} of <NamedObject object={listener.object} at={position} />.{' '}
            </>
          )}
          {route === undefined ? (
            'No route matched.'
          ) : (
            <>
              Rule {route.rule ?? 0} of <NamedObject object={route.object} at={position} />.
            </>
          )}
        </p>
        {steps.length === 0 ? (
          <Empty>No policy ran.</Empty>
        ) : (
          <StepTable
            at={position}
            steps={steps.map(({ object, from, ...step }) => ({
              ...step,
              objects: (from ?? (object === undefined ? [] : [{ object }])).map(
                (version) => version.object,
              ),
            }))}
          />
        )}
      </section>
      <section class="card" aria-labelledby="outcome">
        <h2 id="outcome">Response</h2>
        <Facts
          facts={{
            status: response.status,
            reason: response.reason,
            error: response.error,
            detail: response.detail,
            backend: explained.backend?.name,
            endpoint: explained.backend?.endpoint,
            milliseconds: response.durationMs,
            'failed attempts': explained.attempts
              .map(({ endpoint, failure }) => `${endpoint}: ${failure}`)
              .join(', '),
            ...explained.details,
            cost: costText(explained),
          }}
        />
      </section>
      <section class="card" aria-labelledby="request">
        <h2 id="request">Request {id}</h2>
        <Facts facts={{ url: address, client: request.source, port: request.port }} />
        <p class="quiet">
          Headers: {request.headers.map(({ name, value }) => headerText(name, value)).join(', ')}.
          Values are recorded only if the configuration refers to them.
        </p>
      </section>
    </article>
  )
}

/** The recorded cost, exactly as it was computed. */
function costText({ details }: Explained): string | undefined {
  const { 'cost.status': status, 'cost.total': total } = details
  if (status === undefined) return undefined
  return total === undefined ? 'no known price' : `${total} USD (${status})`
}

const headerText = (name: string, value: string | undefined) =>
  value === undefined ? name : `${name}: ${value}`

const Facts = ({ facts }: { facts: Readonly<Record<string, string | number | undefined>> }) => (
  <dl class="facts">
    {Object.entries(facts)
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

/** A command that sends the request again, as far as it was recorded. */
function curlOf({ request }: Explained): string {
  const query = request.query === undefined ? '' : `?${request.query}`
  const headers = request.headers
    .filter(({ name, value }) => value !== undefined && name !== 'host')
    .map(({ name, value }) => ` -H ${quoted(`${name}: ${value}`)}`)
  const url = `${request.scheme}://${request.host}${request.path}${query}`
  return `curl -X ${request.method} ${quoted(url)}${headers.join('')}`
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
