import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { place } from '../../state/location.ts'
import { durations, type TimeRange, timesOf, useRange } from '../../state/range.ts'
import { served } from '../../state/served.ts'
import { log } from '../../state/worker-client.ts'
import { Offered } from '../../ui/offered.tsx'
import { Failure } from '../../ui/states.tsx'
import { TextArea } from '../../ui/text-area.tsx'
import { type Attempt, Attempts } from './attempts.tsx'
import { type WhatIf, WhatIfReport } from './what-if.tsx'

/** What was typed stays while other views are shown. It is never put into a link. */
const curl = signal('')
const manifests = signal('')

const otherwise =
  'Requests are simulated by the code of the proxy, which a page alone does not have.'

/** The way that a request would take: now, at the shown moment, and with edited manifests. */
export function Try() {
  const given = place.value.params.curl
  useEffect(() => {
    if (given !== undefined) curl.value = given
  }, [given])
  return (
    <article>
      <header class="title">
        <h1>Try a request or a change</h1>
        <span class="quiet">Nothing is sent to backends, and nothing is applied.</span>
      </header>
      <Offered offer="commands" otherwise={otherwise}>
        <Form />
      </Offered>
    </article>
  )
}

interface Results {
  readonly attempts?: readonly Attempt[]
  readonly whatIf?: WhatIf
  readonly problem?: string
}

function Form() {
  const [results, setResults] = useState<Results>({})
  const [isBusy, setBusy] = useState(false)
  const range = useRange()
  const show = async (load: () => Promise<Results>) => {
    setBusy(true)
    setResults(await load().catch((error: Error) => ({ problem: error.message })))
    setBusy(false)
  }
  return (
    <div class="content" aria-busy={isBusy}>
      <div class="pair">
        <form
          class="card"
          onSubmit={(event) => {
            event.preventDefault()
            show(simulateAll)
          }}
        >
          <label for="curl">Request, as a curl command</label>
          <TextArea
            id="curl"
            rows={6}
            placeholder="curl https://shop.example.com/orders -H 'x-team: a'"
            text={curl}
          />
          <div class="actions">
            <button type="submit" disabled={isBusy || curl.value.trim() === ''}>
              Show its way
            </button>
            <button
              type="button"
              disabled={isBusy || manifests.value.trim() === ''}
              onClick={() => show(() => runWhatIf(range))}
            >
              What would the change do?
            </button>
          </div>
          <p class="quiet">
            A change is tried on the requests that were recorded in the{' '}
            {range.duration === undefined
              ? 'chosen time'
              : durations[range.duration].title.toLowerCase()}
            .
          </p>
        </form>
        <section class="card" aria-labelledby="manifests">
          <h2 id="manifests">Manifests to add or replace</h2>
          <Editor />
        </section>
      </div>
      <div aria-live="polite">
        {results.problem !== undefined && <Failure message={results.problem} />}
        {results.attempts !== undefined && <Attempts attempts={results.attempts} />}
        {results.whatIf !== undefined && <WhatIfReport report={results.whatIf} />}
      </div>
    </div>
  )
}

function Editor() {
  const element = useRef<HTMLDivElement>(null)
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    let end: (() => void) | undefined
    let isClosed = false
    import('./editor.ts').then(
      ({ editManifest }) => {
        if (isClosed || element.current === null) return
        end = editManifest(element.current, {
          text: manifests.value,
          label: 'Manifests to add or replace',
          onChange: (text) => {
            manifests.value = text
          },
        })
      },
      (error: Error) => setProblem(`The editor could not be loaded: ${error.message}`),
    )
    return () => {
      isClosed = true
      end?.()
    }
  }, [])
  return (
    <>
      {problem !== undefined && <Failure message={problem} />}
      <div class="editor" ref={element} />
    </>
  )
}

/** The present state, that of the shown moment if it is another, and that with the edited manifests. */
async function simulateAll(): Promise<Results> {
  const { position } = place.value
  const isPast = position !== undefined && position < log.value.last
  const states = [
    { title: 'Now', options: {} },
    ...(isPast ? [{ title: `At event ${position}`, options: { at: `${position}` } }] : []),
    ...(manifests.value.trim() === ''
      ? []
      : [{ title: 'With the edited manifests', options: { manifests: manifests.value } }]),
  ]
  const attempts: Attempt[] = []
  for (const { title, options } of states) {
    const { output, reports } = await run('simulate', { ...options, curl: curl.value.trim() })
    const ways = output === '' ? [] : output.split('\n').map((line) => JSON.parse(line))
    attempts.push({ title, ways, reports })
  }
  return { attempts }
}

/** Tries the edited manifests on the requests that were recorded in a time. */
async function runWhatIf(range: TimeRange): Promise<Results> {
  const { fromMs, toMs } = timesOf(range)
  const { output, reports } = await run('what-if', {
    manifests: manifests.value,
    since: new Date(fromMs).toISOString(),
    until: new Date(toMs).toISOString(),
  })
  return output === '' ? { problem: reports.join('\n') } : { whatIf: JSON.parse(output) }
}

function run(name: string, options: object) {
  if (served.value === undefined) throw new Error('The process that serves this page is gone.')
  return served.value.server.run(name, options)
}
