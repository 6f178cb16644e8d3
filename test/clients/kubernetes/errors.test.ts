import { expect } from 'chai';
import { failureOf, parseRetryAfter, statusFailure } from '../../../src/clients/kubernetes/errors.ts';

const asked = { server: 'https://api:6443', method: 'POST', path: '/apis/batch/v1/namespaces/grid/jobs' };

const refusal = (code: number, reason: string, message: string, details: object = {}) =>
  failureOf(asked, code, JSON.stringify({ kind: 'Status', code, reason, message, details }));

describe("an API server's refusal", () => {
  it('hole 8: of wrong types is read as far as it has the right ones', () => {
    const body = {
      kind: 'Status',
      reason: ['AlreadyExists'],
      message: { a: 1 },
      details: { name: 3, causes: 'none', retryAfterSeconds: 'abc' },
    };
    const { code, message, maybeDone, retryAfter } = failureOf(asked, 500, JSON.stringify(body));
    expect({ code, message, maybeDone, retryAfter }).to.deep.equal({
      code: 'kubernetes-server-error',
      message: 'https://api:6443: HTTP 500',
      maybeDone: true,
      retryAfter: undefined,
    });
    for (const details of [null, [], 'x', { causes: [null, 'x'] }])
      expect(failureOf(asked, 404, JSON.stringify({ kind: 'Status', details })).code).to.equal(
        'kubernetes-no-api',
      );
  });

  it('hole 8: of a watch that has no Status is a refusal all the same', () => {
    const asked = { server: 'https://s', method: 'GET', path: '/apis/batch/v1/jobs' };
    for (const none of [undefined, null, 'x', 7, []])
      expect(statusFailure(asked, none)).to.include({ code: 'kubernetes-server-error', maybeDone: true });
  });

  it('hole 8: of a text without end its beginning counts', () => {
    const long = 'admission webhook '.repeat(20_000);
    expect(refusal(422, 'Invalid', long).code).to.equal('kubernetes-invalid');
    expect(refusal(422, 'Invalid', `${long} denied`).code).to.equal('kubernetes-invalid');
  });

  it('hole 3: about a Secret says what an API server says itself, as far as it repeats nothing', () => {
    const path = '/api/v1/namespaces/alice/secrets/db';
    const of = (code: number, reason: string, message: string) =>
      failureOf(
        { ...asked, method: 'GET', path },
        code,
        JSON.stringify({ kind: 'Status', code, reason, message }),
      ).message;
    const rest = ' (the rest is not shown, as it may have contents of a Secret)';
    const server = 'system:serviceaccount:grid:thresher';
    const right = `secrets "db" is forbidden: User "${server}" cannot get resource "secrets" in API group "" in the namespace "alice"`;
    const lacks = `user "${server}" lacks the right to get secrets in namespace "alice"`;
    const quota = 'secrets "db" is forbidden: exceeded quota: few';
    const changed = 'Operation cannot be fulfilled on secrets "db": the object has been modified';
    const denied = 'admission webhook "validate.kyverno.svc-fail" denied the request';
    const long = 'Secret "db" is invalid: data: Too long: may not be more than 1048576 bytes';
    const frozen = 'Forbidden: field is immutable when `immutable` is set';
    const ofData = `Secret "db" is invalid: data: ${frozen}`;
    const ofBoth = `Secret "db" is invalid: [immutable: ${frozen}, data: ${frozen}]`;
    const one = 'Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.password';
    const two =
      'Apply failed with 3 conflicts: conflicts with "kubectl" using v1:\n- .data.a.b\n- .data.c_d\nconflicts with "helm" with subresource "x" using v1 at 2026-01-01T00:00:00Z:\n- .type';
    const leaving =
      'secrets "db" is forbidden: unable to create new content in namespace alice because it is being terminated';
    const cases: readonly (readonly [code: number, reason: string, message: string, told: string])[] = [
      [401, 'Unauthorized', 'Unauthorized', 'Unauthorized'],
      [403, 'Forbidden', right, lacks],
      [403, 'Forbidden', `${right}: RBAC: clusterrole.rbac.authorization.k8s.io "x" not found`, lacks],
      [
        403,
        'Forbidden',
        `${quota}, requested: secrets=1, used: secrets=9, limited: secrets=9`,
        `${quota}${rest}`,
      ],
      [403, 'Forbidden', leaving, leaving],
      [404, 'NotFound', 'secrets "db" not found', 'secrets "db" not found'],
      [404, 'NotFound', 'namespaces "alice" not found', 'namespaces "alice" not found'],
      [409, 'AlreadyExists', 'secrets "db" already exists', 'secrets "db" already exists'],
      [409, 'Conflict', `${changed}; please apply your changes to the latest version`, `${changed}${rest}`],
      [409, 'Conflict', one, one],
      [409, 'Conflict', two, two],
      [409, 'Conflict', `${one}: hunter2`, `${one}${rest}`],
      [400, 'BadRequest', `${denied}: no Secret here`, `${denied}${rest}`],
      [422, 'Invalid', long, long],
      [422, 'Invalid', ofData, ofData],
      [422, 'Invalid', ofBoth, ofBoth],
      [422, 'Invalid', `${ofData}, data[x]: Invalid value: "y"`, `${ofData}${rest}`],
      [422, 'Invalid', 'Secret "db" is invalid: type: Required value', `Secret "db" is invalid${rest}`],
      [500, 'InternalError', '', 'HTTP 500 (InternalError)'],
      [500, 'Own', 'etcd', 'HTTP 500; what it says is not shown, as it may have contents of a Secret'],
    ];
    for (const [code, reason, message, told] of cases)
      expect(of(code, reason, message)).to.equal(`https://api:6443: ${told}`);
  });

  const cases: [what: string, failure: ReturnType<typeof refusal>, code: string, message: string][] = [
    [
      'a missing login',
      refusal(401, 'Unauthorized', 'Unauthorized'),
      'kubernetes-unauthorized',
      'Unauthorized',
    ],
    [
      'a missing right',
      refusal(
        403,
        'Forbidden',
        'jobs.batch is forbidden: User "jane" cannot create resource "jobs" in API group "batch" in the namespace "grid"',
        { group: 'batch', kind: 'jobs' },
      ),
      'kubernetes-forbidden',
      'user "jane" lacks the right to create jobs.batch in namespace "grid"',
    ],
    [
      'a missing right of a subresource of the core group',
      refusal(
        403,
        'Forbidden',
        'pods "a" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "grid"',
      ),
      'kubernetes-forbidden',
      'user "jane" lacks the right to get pods/log in namespace "grid"',
    ],
    [
      'a missing right everywhere',
      refusal(
        403,
        'Forbidden',
        'pods is forbidden: User "j" cannot list resource "pods" in API group "" at the cluster scope',
      ),
      'kubernetes-forbidden',
      'user "j" lacks the right to list pods at the cluster scope',
    ],
    [
      'a missing right of a path',
      refusal(403, 'Forbidden', 'forbidden: User "j" cannot get path "/readyz"'),
      'kubernetes-forbidden',
      'user "j" lacks the right to get /readyz',
    ],
    [
      'a full quota',
      refusal(
        403,
        'Forbidden',
        'jobs.batch "a" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5',
        { name: 'a' },
      ),
      'kubernetes-quota',
      'exceeded quota: q',
    ],
    [
      'a policy',
      refusal(
        403,
        'Forbidden',
        'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
      ),
      'kubernetes-admission',
      'violates PodSecurity',
    ],
    [
      'a webhook',
      refusal(400, 'BadRequest', 'admission webhook "w.site.org" denied the request: no pilots today'),
      'kubernetes-admission',
      'no pilots today',
    ],
    [
      'a namespace on its way out',
      refusal(
        403,
        'Forbidden',
        'jobs.batch "a" is forbidden: unable to create new content in namespace grid because it is being terminated',
        {
          causes: [{ reason: 'NamespaceTerminating' }],
        },
      ),
      'kubernetes-namespace',
      'being terminated',
    ],
    [
      'a namespace that is not there',
      refusal(404, 'NotFound', 'namespaces "grid" not found', { name: 'grid', kind: 'namespaces' }),
      'kubernetes-namespace',
      'namespaces "grid" not found',
    ],
    [
      'an object that is not there',
      refusal(404, 'NotFound', 'jobs.batch "a" not found', { name: 'a' }),
      'kubernetes-not-found',
      'jobs.batch "a" not found',
    ],
    [
      'a kind that is not served: that no object of it was found says nothing',
      refusal(404, 'NotFound', 'the server could not find the requested resource'),
      'kubernetes-no-api',
      'could not find the requested resource',
    ],
    [
      'a name that is taken',
      refusal(409, 'AlreadyExists', 'jobs.batch "a" already exists', { name: 'a' }),
      'kubernetes-already-exists',
      'already exists',
    ],
    [
      'another object of that name',
      refusal(409, 'Conflict', 'the UID in the precondition (a) does not match the UID in record (b)'),
      'kubernetes-conflict',
      'precondition',
    ],
    [
      'a version of long ago',
      refusal(410, 'Expired', 'too old resource version: 1 (9)'),
      'kubernetes-gone',
      'too old',
    ],
    [
      'wrong fields',
      refusal(422, 'Invalid', 'Job.batch "a" is invalid: spec.template.spec.restartPolicy: Required value', {
        causes: [{ field: 'spec.template.spec.restartPolicy', reason: 'FieldValueRequired' }],
      }),
      'kubernetes-invalid',
      'spec.template.spec.restartPolicy: Required value',
    ],
    [
      'too much at once',
      refusal(429, 'TooManyRequests', 'slow down'),
      'kubernetes-too-many-requests',
      'slow down',
    ],
    [
      'an unreadable request',
      refusal(400, 'BadRequest', 'unknown field'),
      'kubernetes-refused',
      'unknown field',
    ],
    ['a failure of its own', refusal(500, 'InternalError', 'etcd'), 'kubernetes-server-error', 'etcd'],
  ];
  for (const [what, failure, code, message] of cases) {
    it(`a refusal for ${what} is ${code}`, () => {
      expect(failure.code).to.equal(code);
      expect(failure.message).to.contain(message);
      expect(failure.message).to.contain('https://api:6443');
    });
  }

  it('tells whether it may have been done: after a failure of the server, and of nothing else', () => {
    for (const [, failure] of cases) expect(failure.maybeDone).to.equal((failure.status ?? 0) >= 500);
  });

  it('a refusal tells how long the server asks to wait', () => {
    expect(refusal(429, 'TooManyRequests', 'no', { retryAfterSeconds: 7 }).retryAfter).to.equal(7000);
    expect(refusal(429, 'TooManyRequests', 'no').retryAfter).to.equal(undefined);
    const body = JSON.stringify({ kind: 'Status', code: 429 });
    expect(failureOf(asked, 429, body, 3000).retryAfter).to.equal(3000);
  });

  it('a foreign 404 of a server in between is no missing Job', () => {
    const page = failureOf(asked, 404, '<html>\n  <h1>Not here</h1></html>');
    expect(page.code).to.equal('kubernetes-no-api');
    expect(page.message)
      .to.contain('does not answer like a Kubernetes API server: HTTP 404')
      .and.contain('Not here');
    expect(failureOf(asked, 302, '').code).to.equal('kubernetes-no-api');
    expect(failureOf(asked, 403, 'Client sent an HTTP request to an HTTPS server.').code).to.equal(
      'kubernetes-no-api',
    );
    expect(failureOf(asked, 503, 'no healthy upstream')).to.include({
      code: 'kubernetes-server-error',
      maybeDone: true,
    });
    expect(failureOf(asked, 429, 'Too many requests, please try again later.').code).to.equal(
      'kubernetes-too-many-requests',
    );
    expect(failureOf(asked, 401, '').code).to.equal('kubernetes-unauthorized');
    expect(failureOf(asked, 404, 'x'.repeat(5000)).message.length).to.be.lessThan(400);
    for (const odd of ['null', '[]', '"a"', '{}', '{"kind":"Job"}']) {
      expect(failureOf(asked, 404, odd).code).to.equal('kubernetes-no-api');
    }
  });

  it('a refusal within a watch is an error like any other', () => {
    const gone = statusFailure(asked, { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
    expect(gone).to.include({ code: 'kubernetes-gone', reason: 'Expired', status: 410 });
    expect(statusFailure(asked, {}).code).to.equal('kubernetes-server-error');
  });
});

describe('a Retry-After header', () => {
  it('a Retry-After header has seconds or a date', () => {
    const now = Date.UTC(2026, 0, 1);
    expect(parseRetryAfter('5', now)).to.equal(5000);
    expect(parseRetryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now)).to.equal(60_000);
    expect(parseRetryAfter('Wed, 31 Dec 2025 00:00:00 GMT', now)).to.equal(0);
    for (const none of [undefined, '', 'soon', '-1'.repeat(30)])
      expect(parseRetryAfter(none, now)).to.equal(undefined);
  });
});
