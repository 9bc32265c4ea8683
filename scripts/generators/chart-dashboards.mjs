// Grafana dashboards of the chart: each panel is a title, a unit and queries.

const panel = (title, unit, ...queries) => ({ title, unit, queries })
const query = (expr, legend = '') => ({ expr, legend })
const perSecond = (metric, by = '', selector = '') =>
  `sum${by && ` by (${by})`} (rate(${metric}${selector}[$__rate_interval]))`
const quantile = (share, metric, by = '') =>
  `histogram_quantile(${share}, sum by (le${by && `, ${by}`}) (rate(${metric}_bucket[$__rate_interval])))`

const proxyPanels = [
  panel(
    'Requests',
    'reqps',
    query(perSecond('sluice_requests_total', 'gateway, route'), '{{gateway}} {{route}}'),
  ),
  panel(
    'Share of answers with 5xx',
    'percentunit',
    query(
      `${perSecond('sluice_requests_total', 'gateway', '{status=~"5.."}')} / ${perSecond('sluice_requests_total', 'gateway')}`,
      '{{gateway}}',
    ),
  ),
  panel(
    'Duration of requests',
    's',
    query(quantile(0.5, 'sluice_request_duration_seconds'), 'p50'),
    query(quantile(0.9, 'sluice_request_duration_seconds'), 'p90'),
    query(quantile(0.99, 'sluice_request_duration_seconds'), 'p99'),
  ),
  panel(
    'Reasons of refusals and errors',
    'reqps',
    query(perSecond('sluice_requests_total', 'reason'), '{{reason}}'),
  ),
  panel('Retries', 'reqps', query(perSecond('sluice_retries_total', 'route'), '{{route}}')),
  panel(
    'Client connections',
    'short',
    query('sum by (gateway, listener) (sluice_downstream_connections)', '{{gateway}} {{listener}}'),
  ),
  panel(
    'Bytes',
    'Bps',
    query(perSecond('sluice_downstream_received_bytes_total'), 'from clients'),
    query(perSecond('sluice_downstream_sent_bytes_total'), 'to clients'),
  ),
  panel(
    'Time to connect to backends, p99',
    's',
    query(quantile(0.99, 'sluice_upstream_connect_duration_seconds', 'transport'), '{{transport}}'),
  ),
  panel(
    'Ejected endpoints',
    'short',
    query(perSecond('sluice_upstream_ejections_total', 'pod'), '{{pod}}'),
  ),
  panel(
    'CPU',
    'short',
    query('sum by (pod) (rate(sluice_process_cpu_seconds_total[$__rate_interval]))', '{{pod}}'),
  ),
  panel('Memory', 'bytes', query('sum by (pod) (sluice_process_resident_memory_bytes)', '{{pod}}')),
  panel(
    'Configuration',
    'short',
    query('min by (pod) (sluice_controller_connected)', 'connected {{pod}}'),
    query('sum by (pod) (sluice_config_rejected_resources)', 'rejected {{pod}}'),
  ),
]

const model = 'gen_ai_response_model'

const modelPanels = [
  panel(
    'Requests to models',
    'reqps',
    query(
      perSecond('sluice_gen_ai_client_operation_duration_count', 'gen_ai_provider_name'),
      '{{gen_ai_provider_name}}',
    ),
  ),
  panel(
    'Failed requests to models',
    'reqps',
    query(
      perSecond(
        'sluice_gen_ai_client_operation_duration_count',
        'gen_ai_provider_name, error_type',
        '{error_type!=""}',
      ),
      '{{gen_ai_provider_name}} {{error_type}}',
    ),
  ),
  panel(
    'Cost in USD per hour',
    'currencyUSD',
    query(`3600 * ${perSecond('sluice_gen_ai_client_cost_usd_total', model)}`, `{{${model}}}`),
  ),
  panel(
    'Tokens',
    'short',
    query(
      perSecond('sluice_gen_ai_client_token_usage_sum', `gen_ai_token_type, ${model}`),
      `{{gen_ai_token_type}} {{${model}}}`,
    ),
  ),
  panel(
    'Time to the first token, p90',
    's',
    query(quantile(0.9, 'sluice_gen_ai_server_time_to_first_token', model), `{{${model}}}`),
  ),
  panel(
    'Ejected providers',
    'short',
    query(
      'sum by (backend, provider, reason) (sluice_model_provider_ejected)',
      '{{backend}} {{provider}} {{reason}}',
    ),
  ),
  panel(
    'Decisions of guards',
    'short',
    query(
      perSecond('sluice_guardrail_checks_total', 'phase, guard, action'),
      '{{phase}} {{guard}} {{action}}',
    ),
  ),
  panel(
    'Refusals of budgets',
    'reqps',
    query(perSecond('sluice_budget_refusals_total', 'budget, reason'), '{{budget}} {{reason}}'),
  ),
  panel(
    'Requests without a known price',
    'reqps',
    query(perSecond('sluice_model_cost_lookups_total', model, '{status!="exact"}'), `{{${model}}}`),
  ),
  panel(
    'MCP messages',
    'reqps',
    query(perSecond('sluice_mcp_requests_total', 'target, result'), '{{target}} {{result}}'),
  ),
  panel(
    'Calls of tools, p90',
    's',
    query(
      quantile(0.9, 'sluice_mcp_tool_call_duration_seconds', 'target, tool'),
      '{{target}} {{tool}}',
    ),
  ),
  panel(
    'A2A requests',
    'reqps',
    query(
      perSecond('sluice_a2a_requests_total', 'backend, method, result'),
      '{{backend}} {{method}} {{result}}',
    ),
  ),
]

const controllerPanels = [
  panel(
    'Ready, and holder of the lease',
    'short',
    query('sum(sluice_controller_ready)', 'ready'),
    query('sum(sluice_lease_held)', 'holders'),
  ),
  panel('Events', 'short', query(perSecond('sluice_events_appended_total', 'stage'), '{{stage}}')),
  panel('Queues', 'short', query('sum by (queue) (sluice_queue_depth)', '{{queue}}')),
  panel(
    'Fold, time for an event',
    's',
    query(`${perSecond('sluice_fold_seconds_sum')} / ${perSecond('sluice_fold_seconds_count')}`),
  ),
  panel(
    'Append, time until durable',
    's',
    query(
      `${perSecond('sluice_append_seconds_sum')} / ${perSecond('sluice_append_seconds_count')}`,
    ),
  ),
  panel(
    'Writes of statuses',
    'short',
    query(perSecond('sluice_status_writes_total', 'kind, outcome'), '{{kind}} {{outcome}}'),
  ),
  panel(
    'Watches that do not follow',
    'short',
    query('sum by (kind, state) (sluice_watch_up{state!="following"})', '{{kind}} {{state}}'),
  ),
  panel(
    'Proxies',
    'short',
    query('sum(sluice_xds_proxies)', 'connected'),
    query('sum(sluice_xds_rejected_resources)', 'rejected resources'),
  ),
  panel(
    'From a change set to its answer',
    's',
    query(quantile(0.5, 'sluice_xds_push_duration_seconds'), 'p50'),
    query(quantile(0.99, 'sluice_xds_push_duration_seconds'), 'p99'),
  ),
  panel(
    'Replicas that differ',
    'short',
    query(perSecond('sluice_digest_checks_total', 'result'), '{{result}}'),
  ),
  panel(
    'CPU',
    'short',
    query('sum by (pod) (rate(sluice_controller_cpu_seconds_total[$__rate_interval]))', '{{pod}}'),
  ),
  panel(
    'Memory',
    'bytes',
    query('sum by (pod) (sluice_controller_resident_memory_bytes)', '{{pod}}'),
  ),
]

/** @returns {Record<string, object>} each dashboard, in Grafana's model, by the name of its file */
export function dashboards() {
  return {
    proxies: dashboardOf('sluice-proxies', 'Sluice / Proxies', proxyPanels),
    models: dashboardOf('sluice-models', 'Sluice / Models and tools', modelPanels),
    controller: dashboardOf('sluice-controller', 'Sluice / Controller', controllerPanels),
  }
}

const width = 8
const height = 8
const datasource = { type: 'prometheus', uid: '$' + '{datasource}' }

function dashboardOf(uid, title, panels) {
  return {
    uid,
    title,
    tags: ['sluice'],
    schemaVersion: 39,
    timezone: 'browser',
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' }],
    },
    panels: panels.map((one, index) => ({
      id: index + 1,
      type: 'timeseries',
      title: one.title,
      datasource,
      gridPos: { x: (index % 3) * width, y: Math.floor(index / 3) * height, w: width, h: height },
      fieldConfig: { defaults: { unit: one.unit, min: 0 }, overrides: [] },
      targets: one.queries.map(({ expr, legend }, target) => ({
        refId: String.fromCharCode('A'.charCodeAt(0) + target),
        datasource,
        expr,
        legendFormat: legend || title,
      })),
    })),
  }
}
