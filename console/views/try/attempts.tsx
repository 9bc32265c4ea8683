import type { Simulation } from '../../../src/past/simulate/types.ts'
import { Empty } from '../../ui/states.tsx'
import { NamedObject, StepTable, VerdictMark } from '../../ui/steps.tsx'

/** A request in one state; it has several ways if several ports may receive it. */
export interface Attempt {
  readonly title: string
  readonly ways: readonly Simulation[]
  readonly reports: readonly string[]
}

/** Attempts side by side. The first step that decides otherwise than in the first attempt is marked. */
export function Attempts({ attempts }: { attempts: readonly Attempt[] }) {
  const [first] = attempts
  return (
    <div class="side-by-side">
      {attempts.map(({ title, ways, reports }) => (
        <section key={title} class="card" aria-label={title}>
          <h2>{title}</h2>
          {reports.map((report) => (
            <p key={report} class="notice">
              {report}
            </p>
          ))}
          {ways.length === 0 && <Empty>No listener would receive the request.</Empty>}
          {ways.map((way, at) => (
            <Way key={way.request.port ?? at} way={way} other={first?.ways[at]} />
          ))}
        </section>
      ))}
    </div>
  )
}

function Way({ way, other }: { way: Simulation; other: Simulation | undefined }) {
  const { outcome, steps, undecided, request } = way
  const different = other === way ? -1 : firstDifference(way, other)
  return (
    <>
      <p>
        <VerdictMark verdict={outcome.verdict === 'forward' ? 'pass' : outcome.verdict} />{' '}
        {outcome.status !== undefined && <strong>{outcome.status} </strong>}
        on port {request.port ?? 'unknown'}
        {outcome.backend !== undefined && <> to {outcome.backend}</>}
        {outcome.route !== undefined && (
          <>
            {' '}
            by rule {outcome.rule ?? 0} of <NamedObject object={outcome.route} at={undefined} />
          </>
        )}
        {outcome.reason !== undefined && <>: {outcome.reason}</>}
      </p>
      {undecided.map((reason) => (
        <p key={reason} class="notice">
          Undecided: {reason}
        </p>
      ))}
      {steps.length === 0 ? (
        <Empty>No policy runs.</Empty>
      ) : (
        <StepTable
          at={undefined}
          steps={steps.map(({ from, reason, ...step }, at) => ({
            ...step,
            objects: from.map(({ object }) => object),
            generation: from[0]?.generation,
            reason: at === different ? `${reason ?? ''} ← first difference`.trim() : reason,
          }))}
        />
      )}
    </>
  )
}

function firstDifference(way: Simulation, other: Simulation | undefined): number {
  return way.steps.findIndex(({ step, verdict, config }, at) => {
    const before = other?.steps[at]
    return before?.step !== step || before.verdict !== verdict || before.config !== config
  })
}
