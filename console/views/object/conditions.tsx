import { place, setParams } from '../../state/location.ts'
import { log, useLogModel } from '../../state/worker-client.ts'
import { HealthMark } from '../../ui/health.tsx'
import { CauseLinks, ChangeLink, EventLink } from '../../ui/links.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/times.tsx'
import type { Answer } from '../../worker/protocol.ts'
import type { ObjectAnswer } from './answer.ts'

/** Every condition: since when, and which event caused it. A click on one shows when it was how. */
export function Conditions({ object, conditions, exists, knownFrom }: ObjectAnswer) {
  const { expect = '' } = place.value.params
  if (conditions.length === 0) {
    return exists ? (
      <Empty>This controller decides no conditions for the object.</Empty>
    ) : (
      <Empty>An object that does not exist has no conditions.</Empty>
    )
  }
  return (
    <>
      <Scroll label="Conditions">
        <table class="conditions">
          <thead>
            <tr>
              <th>Condition</th>
              <th>Where</th>
              <th>Since</th>
              <th>Cause</th>
              <th>Message</th>
            </tr>
          </thead>
          <tbody>
            {conditions.map((one) => (
              <tr key={one.place + one.type}>
                <td class="nowrap">
                  <HealthMark health={one.health} isShort />{' '}
                  <button
                    type="button"
                    class="link"
                    aria-expanded={expect === one.type}
                    title="Show when this condition had its value"
                    onClick={() =>
                      setParams({ expect: expect === one.type ? '' : one.type, value: '' })
                    }
                  >
                    {one.type}={one.status}
                  </button>
                  <div class="quiet">{one.reason}</div>
                </td>
                <td>{one.place || 'the object'}</td>
                <td class="nowrap">
                  <Time time={one.since} now={log.value.lastMs} />
                </td>
                <td>
                  {one.causes.length === 0 ? (
                    <span class="quiet">
                      {knownFrom === 0 ? 'before the log begins' : 'its event is not known'}
                    </span>
                  ) : (
                    <>
                      <CauseLinks positions={one.causes.map(({ position }) => position)} />
                      {one.causes.map(({ position, text }) => (
                        <div key={position}>{text}</div>
                      ))}
                    </>
                  )}
                </td>
                <td>{one.message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {expect !== '' && (
        <Bisect
          object={object}
          type={expect}
          values={valuesOf(conditions.filter(({ type }) => type === expect))}
        />
      )}
    </>
  )
}

/** What a condition may be expected to be: the usual status, and its statuses and reasons at the moment. */
const valuesOf = (conditions: ObjectAnswer['conditions']): string[] => [
  ...new Set(['True', 'False', ...conditions.flatMap(({ status, reason }) => [status, reason])]),
]

interface BisectProps {
  readonly object: string
  readonly type: string
  readonly values: readonly string[]
}

/** When the condition began or ceased to have a status or reason, over the whole log. */
function Bisect({ object, type, values }: BisectProps) {
  const value = place.value.params.value || 'True'
  const shown = useLogModel('expectation', { object, type, value })
  return (
    <section class="card" aria-labelledby="bisect">
      <h2 id="bisect">
        When was {type}={value}?
      </h2>
      <fieldset class="tabs" aria-label="Expected status or reason">
        {values.map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={one === value}
            onClick={() => setParams({ value: one })}
          >
            {one}
          </button>
        ))}
      </fieldset>
      <Content shown={shown} what="the history of the condition">
        {({ flips, holds, knownFrom }) => (
          <>
            {flips.length === 0 && (
              <Empty>
                The condition {holds ? `always was ${value}` : `was never ${value}`} in the whole
                log.
              </Empty>
            )}
            <ol class="flips">
              {[...flips].reverse().map((flip, at) => (
                <Flip key={flip.cause?.position ?? -at} {...flip} />
              ))}
            </ol>
            {knownFrom > 0 && (
              <p class="quiet">
                Up to event {knownFrom}, this is read from the decisions in the log, which may not
                have every change. sluice bisect folds all events.
              </p>
            )}
          </>
        )}
      </Content>
    </section>
  )
}

function Flip({ holds, cause }: Answer<'expectation'>['flips'][number]) {
  return (
    <li>
      <HealthMark health={holds ? 'ok' : 'problem'} isShort />{' '}
      <strong>{holds ? 'holds since' : 'broken by'}</strong>{' '}
      {cause === undefined ? (
        'an event that is not known'
      ) : (
        <>
          <EventLink position={cause.position} /> <Time time={cause.time} /> {cause.text}{' '}
          <ChangeLink position={cause.position} />
        </>
      )}
    </li>
  )
}
