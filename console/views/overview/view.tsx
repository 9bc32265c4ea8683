import type { Problem } from '../../models/overview.ts'
import { linkTo, objectLink } from '../../state/location.ts'
import { log, useModel } from '../../state/worker-client.ts'
import { HealthMark } from '../../ui/health.tsx'
import { CauseLinks, EventLink, ObjectLink } from '../../ui/links.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/times.tsx'
import type { Answer } from '../../worker/protocol.ts'
import { Traffic, TrafficProblems } from './traffic.tsx'

type OverviewAnswer = Answer<'overview'>

/** Problems that are listed before "show all". */
const firstProblems = 200

export function Overview() {
  const shown = useModel('overview', undefined)
  return (
    <Content shown={shown} what="the overview">
      {({ problems, gateways, proxies, counts }) => (
        <>
          <TrafficProblems />
          <Problems problems={problems} />
          <Traffic />
          <Gateways gateways={gateways} />
          <Proxies proxies={proxies} />
          <section class="card" aria-labelledby="kinds">
            <h2 id="kinds">Objects</h2>
            {counts.length === 0 && <Empty>The log has no objects up to this moment.</Empty>}
            <ul class="tags">
              {counts.map(([kind, count]) => (
                <li key={kind}>
                  <a href={linkTo('objects', [], { kind })}>
                    {count} {kind}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        </>
      )}
    </Content>
  )
}

function Problems({ problems }: { problems: readonly Problem[] }) {
  return (
    <section class="card" aria-labelledby="problems">
      <h2 id="problems">
        Problems of the configuration <span class="count">{problems.length}</span>
      </h2>
      {problems.length === 0 && (
        <Empty>Every condition is as it should be, and no version of an object was refused.</Empty>
      )}
      <ul class="problems">
        {problems.slice(0, firstProblems).map((problem) => (
          <ProblemItem key={`${problem.object} ${problem.place} ${problem.title}`} {...problem} />
        ))}
      </ul>
      {problems.length > firstProblems && (
        <p>
          {firstProblems} of {problems.length} are listed.{' '}
          <a href={linkTo('objects', [], { health: 'bad' })}>Show all objects with problems</a>
        </p>
      )}
    </section>
  )
}

function ProblemItem({
  health,
  object,
  title,
  place,
  message,
  since,
  positions,
  condition,
}: Problem) {
  return (
    <li class={`finding ${health}`}>
      <div class="problem-title">
        <HealthMark health={health} isShort />
        {object !== '' && <ObjectLink object={object} />}
        <strong>{title}</strong>
        {place !== '' && <span class="quiet">{place}</span>}
      </div>
      <p class="message">{message}</p>
      <p class="quiet actions">
        {since !== undefined && (
          <span>
            since <Time time={since} now={log.value.lastMs} />
          </span>
        )}
        <CauseLinks positions={positions} />
        {condition !== undefined && <a href={objectLink(object, { expect: condition })}>bisect</a>}
      </p>
    </li>
  )
}

function Gateways({ gateways }: Pick<OverviewAnswer, 'gateways'>) {
  return (
    <section class="card" aria-labelledby="gateways">
      <h2 id="gateways">Gateways</h2>
      {gateways.length === 0 && <Empty>No Gateway of this controller exists at this moment.</Empty>}
      <ul class="gateways">
        {gateways.map(({ object, className, health, addresses, listeners }) => (
          <li key={object} class="gateway">
            <div>
              <HealthMark health={health} /> <ObjectLink object={object} />{' '}
              <span class="quiet">class {className}</span>{' '}
              <a href={linkTo('topology', [], { focus: object })}>topology</a>
            </div>
            <div class="quiet">{addresses.join(', ') || 'no address'}</div>
            <ul class="tags">
              {listeners.map(({ name, port, protocol, routes }) => (
                <li key={name}>
                  {name}: {protocol} {port}, {routes} route{routes === 1 ? '' : 's'}
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Proxies({ proxies }: Pick<OverviewAnswer, 'proxies'>) {
  return (
    <section class="card" aria-labelledby="proxies">
      <h2 id="proxies">Proxies</h2>
      {proxies.length === 0 ? (
        <Empty>No proxy is connected at this moment.</Empty>
      ) : (
        <Scroll label="Proxies">
          <table>
            <thead>
              <tr>
                <th>Proxy</th>
                <th>Gateway</th>
                <th>Address</th>
                <th>Version</th>
                <th>State</th>
                <th>In force</th>
                <th>Rejected</th>
              </tr>
            </thead>
            <tbody>
              {proxies.map(({ name, gateway, address, version, state, watermark, rejections }) => (
                <tr key={name}>
                  <td>{name}</td>
                  <td>{gateway}</td>
                  <td>{address}</td>
                  <td>{version}</td>
                  <td>{state}</td>
                  <td>{watermark < 0 ? 'nothing yet' : <EventLink position={watermark} />}</td>
                  <td>{rejections.length}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  )
}
