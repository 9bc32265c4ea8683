/**
 * 500 tools of 25 products, and 120 labelled questions, to measure tool search. Names and descriptions are written in
 * the style of public servers; questions use other words for what tools do, and every third one does not name the
 * product.
 */

export interface SampleTool {
  readonly server: string
  readonly name: string
  readonly description: string
  readonly inputSchema: { readonly type: 'object'; readonly properties: Record<string, object> }
}

interface Labelled {
  readonly query: string
  /** Names with their server, of which one is expected. */
  readonly expected: readonly string[]
}

/** Products with four things each: its name in names of tools, and what the thing is. */
const products: Readonly<Record<string, readonly (readonly [thing: string, about: string])[]>> = {
  github: [
    ['issue', 'issue of a repository'],
    ['pull_request', 'pull request with its reviews'],
    ['branch', 'branch of a repository'],
    ['release', 'release with its assets'],
  ],
  gitlab: [
    ['merge_request', 'merge request of a project'],
    ['pipeline', 'pipeline of continuous integration'],
    ['runner', 'runner that executes jobs'],
    ['snippet', 'snippet of code'],
  ],
  jira: [
    ['ticket', 'ticket such as a bug or a story'],
    ['sprint', 'sprint of a board'],
    ['epic', 'epic that groups tickets'],
    ['worklog', 'time that was logged on a ticket'],
  ],
  slack: [
    ['message', 'message in a channel or thread'],
    ['channel', 'channel of the workspace'],
    ['reaction', 'emoji reaction to a message'],
    ['reminder', 'reminder for a person'],
  ],
  gmail: [
    ['draft', 'draft of an email'],
    ['label', 'label of the mailbox'],
    ['filter', 'rule that sorts incoming mail'],
    ['thread', 'conversation of emails'],
  ],
  calendar: [
    ['event', 'meeting or appointment with attendees'],
    ['invitation', 'invitation of an attendee'],
    ['availability', 'free and busy times of people'],
    ['room', 'meeting room that can be booked'],
  ],
  drive: [
    ['file', 'file with its content'],
    ['folder', 'folder of files'],
    ['permission', 'sharing of a file with people'],
    ['revision', 'earlier version of a file'],
  ],
  notion: [
    ['page', 'page of the wiki'],
    ['database', 'table of pages with properties'],
    ['block', 'paragraph or other block of a page'],
    ['comment', 'comment in a discussion'],
  ],
  salesforce: [
    ['lead', 'potential customer'],
    ['opportunity', 'deal in the sales funnel'],
    ['account', 'company that is a customer'],
    ['campaign', 'marketing campaign'],
  ],
  hubspot: [
    ['contact', 'person in the address book'],
    ['form', 'form on the web site'],
    ['newsletter', 'newsletter to subscribers'],
    ['segment', 'group of contacts by criteria'],
  ],
  stripe: [
    ['payment', 'payment by card'],
    ['refund', 'money that goes back to a customer'],
    ['subscription', 'recurring plan of a customer'],
    ['coupon', 'discount for customers'],
  ],
  quickbooks: [
    ['invoice', 'invoice for a customer'],
    ['expense', 'expense with its receipt'],
    ['vendor', 'supplier that is paid'],
    ['estimate', 'quote for work'],
  ],
  shopify: [
    ['product', 'product in the shop'],
    ['order', 'order of a buyer'],
    ['inventory', 'stock of a product in a warehouse'],
    ['shipment', 'parcel with its tracking number'],
  ],
  zendesk: [
    ['request', 'support request of a customer'],
    ['macro', 'canned answer of agents'],
    ['satisfaction', 'rating of support by a customer'],
    ['article', 'article of the help center'],
  ],
  pagerduty: [
    ['incident', 'incident that alerts people on call'],
    ['schedule', 'rotation of people on call'],
    ['escalation', 'order in which people are alerted'],
    ['maintenance', 'window without alerts'],
  ],
  datadog: [
    ['monitor', 'alert on a metric'],
    ['dashboard', 'dashboard with graphs'],
    ['log', 'log lines of services'],
    ['slo', 'objective for the availability of a service'],
  ],
  postgres: [
    ['table', 'table with its columns'],
    ['index', 'index that speeds up queries'],
    ['role', 'user of the database with privileges'],
    ['backup', 'backup of the database'],
  ],
  s3: [
    ['bucket', 'bucket for objects'],
    ['object', 'object in a bucket'],
    ['lifecycle', 'rule that expires objects'],
    ['presigned_url', 'temporary link to an object'],
  ],
  kubernetes: [
    ['pod', 'pod with its containers'],
    ['deployment', 'deployment with its replicas'],
    ['secret', 'secret of a namespace'],
    ['node', 'machine of the cluster'],
  ],
  twilio: [
    ['sms', 'text message to a phone'],
    ['call', 'phone call'],
    ['number', 'phone number of the account'],
    ['recording', 'recording of a call'],
  ],
  zoom: [
    ['webinar', 'webinar with registrants'],
    ['transcript', 'transcript of a meeting'],
    ['poll', 'poll among participants'],
    ['breakout', 'small group of participants'],
  ],
  figma: [
    ['frame', 'frame of a design'],
    ['component', 'reusable component of a design'],
    ['style', 'color or text style'],
    ['prototype', 'interactive prototype'],
  ],
  trello: [
    ['card', 'card of a board'],
    ['board', 'board with lists of cards'],
    ['checklist', 'checklist of a card'],
    ['member', 'member of a board'],
  ],
  workday: [
    ['employee', 'employee with position and manager'],
    ['vacation', 'days off of an employee'],
    ['payslip', 'salary statement of an employee'],
    ['candidate', 'applicant for a job'],
  ],
  maps: [
    ['route', 'way between two places'],
    ['place', 'shop or sight with opening hours'],
    ['geocode', 'coordinates of an address'],
    ['distance', 'travel time between addresses'],
  ],
}

/** What tools do, how they say it, and other words for it in questions. */
const operations = [
  ['create', 'Creates a new', ['add a', 'open a new', 'set up a']],
  ['list', 'Lists and filters each', ['show every', 'which ones are there:', 'browse each']],
  ['get', 'Returns the details of a', ['look up the', 'tell me more on one', 'read the']],
  ['update', 'Changes fields of a', ['edit the', 'modify a', 'correct the']],
  ['delete', 'Deletes a', ['remove the', 'get rid of a', 'throw away the']],
] as const

export const sampleTools: readonly SampleTool[] = Object.entries(products).flatMap(
  ([server, things]) =>
    things.flatMap(([thing, about]) =>
      operations.map(([verb, says]) => ({
        server,
        name: `${verb}_${thing}`,
        description: `${says} ${about}.`,
        inputSchema: {
          type: 'object' as const,
          properties:
            verb === 'list'
              ? { query: { type: 'string' }, limit: { type: 'integer' } }
              : { [`${thing}_id`]: { type: 'string' } },
        },
      })),
    ),
)

/** Questions in the words of a user, by the tool that helps. */
const natural: Readonly<Record<string, string>> = {
  'file a bug': 'jira create_ticket',
  'who is on call tonight': 'pagerduty get_schedule pagerduty list_schedule',
  'give the customer their money back': 'stripe create_refund',
  'send a text message to +49 170 1234567': 'twilio create_sms',
  'how much vacation does Ana have left': 'workday get_vacation workday list_vacation',
  'share the spreadsheet with the finance team': 'drive create_permission drive update_permission',
  'book a meeting room for ten people': 'calendar create_room calendar list_room calendar get_room',
  'track the parcel of order 1001': 'shopify get_shipment shopify list_shipment',
  'restart the containers of the checkout pod':
    'kubernetes update_pod kubernetes delete_pod kubernetes get_pod',
  'make a temporary link to the object': 's3 create_presigned_url',
  'what did people say in yesterday’s meeting': 'zoom get_transcript zoom list_transcript',
  'how long does it take to travel from Bonn to Trier': 'maps get_distance maps list_distance',
  'discount code for new customers': 'stripe create_coupon',
  'queries on the orders table are slow, add an index': 'postgres create_index',
  'apply a label to this email': 'gmail create_label gmail update_label gmail get_label',
  'react to the message with a thumbs up': 'slack create_reaction',
  'merge the merge request': 'gitlab update_merge_request gitlab get_merge_request',
  'no alerts during the maintenance window': 'pagerduty create_maintenance',
  'put the receipt of the taxi into expenses': 'quickbooks create_expense',
  'remind me tomorrow at nine': 'slack create_reminder',
}

export const sampleQueries: readonly Labelled[] = [
  ...Array.from({ length: 100 }, (_, n): Labelled => {
    const [server, things] = Object.entries(products)[n % 25] ?? ['', []]
    const [thing = '', about = ''] = things[Math.floor(n / 25)] ?? []
    const [verb = 'get', , words = []] = operations[(n * 7) % 5] ?? []
    const what = n % 2 === 0 ? about : thing.replace('_', ' ')
    const where = n % 3 === 0 ? '' : ` in ${server}`
    return {
      query: `${words[n % 3]} ${what}${where}`,
      expected: [`${server} ${verb}_${thing}`],
    }
  }),
  ...Object.entries(natural).map(([query, tools]) => ({
    query,
    expected: tools.match(/\S+ \S+/g) ?? [],
  })),
]

/** The share of questions for which one of the first `count` tools is expected. */
export function recallAt(
  count: number,
  search: (query: string) => readonly number[],
): { readonly recall: number; readonly missed: readonly string[] } {
  const missed = sampleQueries.filter(({ query, expected }) => {
    const found = search(query).slice(0, count)
    return !found.some((at) => {
      const tool = sampleTools[at]
      return tool !== undefined && expected.includes(`${tool.server} ${tool.name}`)
    })
  })
  return {
    recall: 1 - missed.length / sampleQueries.length,
    missed: missed.map((one) => one.query),
  }
}
