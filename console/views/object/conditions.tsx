import { place, setParams } from '../../state/location.ts'
import { log, useLogModel } from '../../state/worker-client.ts'
import { HealthMark } from '../../ui/health.tsx'
import { ChangeLink, EventLink } from '../../ui/links.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/times.tsx'
import type { ObjectAnswer } from './answer.ts'

/** Every condition: since when, and which event caused it. A click on one shows when it was how. */
export function Conditions({ object, conditions, exists }: ObjectAnswer) {
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
                    onClick={() => setParams({ expect: expect === one.type ? '' : one.type })}
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
                  {one.cause === undefined ? (
                    <span class="quiet">before the log begins</span>
                  ) : (
                    <>
                      <EventLink position={one.cause.position} />
                      <div>{one.cause.text}</div>
                      <ChangeLink position={one.cause.position} />
                    </>
                  )}
                </td>
                <td>{one.message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {expect !== '' && <Bisect object={object} type={expect} />}
    </>
  )
}

/** When the condition began or ceased to be True, over the whole log. */
function Bisect({ object, type }: { object: string; type: string }) {
  const shown = useLogModel('expectation', { object, type, value: 'True' })
  return (
    <section class="card" aria-labelledby="bisect">
      <h2 id="bisect">When was {type}=True?</h2>
      <Content shown={shown} what="the history of the condition">
        {({ flips }) =>
          flips.length === 0 ? (
            <Empty>The condition was never True in the whole log.</Empty>
          ) : (
            <ol class="flips">
              {[...flips].reverse().map(({ holds, position, time, cause }) => (
                <li key={position}>
                  <HealthMark health={holds ? 'ok' : 'problem'} isShort />{' '}
                  <strong>{holds ? 'holds since' : 'broken by'}</strong>{' '}
                  <EventLink position={position} /> <Time time={time} /> {cause}{' '}
                  <ChangeLink position={position} />
                </li>
              ))}
            </ol>
          )
        }
      </Content>
    </section>
  )
}
