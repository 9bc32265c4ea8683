/** What the process counts since its start, and what recorded requests say about calls. */
import { mcpSessions, targetText, toolCalls } from '../../models/tools.ts'
import { sumBy } from '../../source/prometheus.ts'
import { recentRecords, useRecentRecords } from '../../state/recent-records.ts'
import { useServed } from '../../state/served.ts'
import { CountTable } from '../../ui/count-table.tsx'
import { Content } from '../../ui/states.tsx'

const everyMs = 5_000

export function Messages() {
  const labels = ['backend', 'target', 'method', 'result']
  const shown = useServed(
    'tools',
    async (server, signal) => {
      const samples = await server.metrics(signal)
      return {
        messages: sumBy(samples, 'sluice_mcp_requests_total', labels),
        sessions: mcpSessions(samples),
      }
    },
    everyMs,
  )
  return (
    <Content shown={shown} what="messages">
      {({ messages, sessions }) => (
        <>
          <CountTable
            title="Messages"
            columns={['Backend', 'Target', 'Method', 'Result', 'Count']}
            names={4}
            rows={messages.map(
              ({ labels: [backend = '', target = '', method = '', result = ''], value }) => [
                backend,
                targetText(method, target),
                method,
                result,
                value,
              ],
            )}
            none="No MCP message has been answered yet."
          />
          <CountTable
            title="Sessions"
            columns={['Backend', 'Begun', 'Failed to begin']}
            names={1}
            rows={sessions}
            none="No client has begun an MCP session yet."
          />
        </>
      )}
    </Content>
  )
}

export function Calls() {
  const shown = useRecentRecords('calls', toolCalls)
  return (
    <Content shown={shown} what="calls of tools">
      {(rows) => (
        <CountTable
          title="Calls of tools"
          columns={['Tool', 'Target', 'Status', 'Authorization', 'Why', 'Recorded']}
          names={5}
          rows={rows}
          none={`The last ${recentRecords} recorded requests call no tool.`}
        />
      )}
    </Content>
  )
}
