// The scenario of `expected`, with node-postgres: postgres.js NAME
const { Client } = require('pg');

const NAME = process.argv[2];
const [JOB, ME, OTHER] = [`job-${NAME}`, `${NAME}-1`, `${NAME}-2`];
const warnings = [];
// Server, user and database are in PGHOST, PGPORT...
const db = new Client();
db.on('notice', (notice) => warnings.push(notice.message));

const show = (what, value) => console.log(`${what}: ${value}`);

// The first column of the first row; undefined if there is no row. A bigint comes as a string.
const one = async (sql, ...args) => (await db.query({ text: sql, values: args, rowMode: 'array' })).rows[0]?.[0];

const sqlstate = (promise) => promise.then(() => 'no error', (error) => error.code);

// Writes in one transaction, behind the fence if there is a token.
async function write(token) {
    await db.query('BEGIN');
    try {
        if (token) {
            await db.query('SELECT lease_fence($1, $2)', [JOB, token]);
        }
        const result = await db.query(`INSERT INTO work_${NAME} (token) VALUES ($1)`, [token]);
        await db.query('COMMIT');
        return result.rowCount;
    } catch (error) {
        await db.query('ROLLBACK');
        throw error;
    }
}

async function scenario() {
    show('try', await one('SELECT lease_try($1, $2, $3)', JOB, ME, '30 s'));
    show("another's try", await one('SELECT lease_try($1, $2, $3)', JOB, OTHER, '30 s'));
    show('renew', await one('SELECT lease_renew($1, $2, $3)', JOB, ME, '30 s'));
    const token = await one('SELECT lease_token($1, $2)', JOB, ME);
    show('token', BigInt(token) > 0n);
    show('token and answer in one round trip', token ===
        await one('SELECT lease_token($1, $2) WHERE lease_try($1, $2, $3)', JOB, ME, '30 s'));
    show('renew that tenure', await one('SELECT lease_renew($1, $2, $3, $4)', JOB, ME, '30 s', token));
    let renewed = 0;
    while (renewed < 10 && await one('SELECT lease_renew($1, $2, $3)', JOB, ME, '30 s')) {
        renewed++;
    }
    show('renew ten times', renewed);
    show("another's token", await one('SELECT lease_token($1, $2)', JOB, OTHER));
    show('write behind the fence', await write(token));
    show('write without it', await sqlstate(write(null)));
    const slots = [`slot-${NAME}-1`, `slot-${NAME}-2`];
    show('a slot', slots.includes(await one('SELECT lease_try_any($1, $2, $3)', slots, ME, '30 s')));
    await one('SELECT lease_try(name, $1, $2) FROM unnest($3::text[]) AS name', ME, '30 s', slots);
    show('renew all', (await one('SELECT lease_renew_all($1, $2, $3)', slots, ME, '30 s')).length);
    show('release', await one('SELECT lease_release($1, $2)', JOB, ME));
    warnings.length = 0;
    show('release again', await one('SELECT lease_release($1, $2, token => $3)', JOB, ME, token));
    show('with a warning', warnings.join().includes('is not held'));
    show('fence too late', await sqlstate(write(token)));
    show('no ttl', await sqlstate(one('SELECT lease_try($1, $2, $3)', JOB, ME, null)));
    const later = await one('CALL lease_acquire($1, $2, $3)', JOB, ME, '30 s');
    show('acquire', BigInt(later) > BigInt(token));
    show('acquire in vain', await one('CALL lease_acquire($1, $2, $3, $4)', JOB, OTHER, '30 s', '50 ms'));
    show('acquire in turn',
        BigInt(await one('CALL lease_acquire($1, $2, $3, $4)', `turn-${NAME}`, ME, '30 s', '30 s')) > 0n);
    show('watch in vain', await one('CALL lease_watch($1, $2, $3)', JOB, later, '50 ms') === later);
    await one('SELECT lease_release($1, $2)', JOB, ME);
    show('watch', await one('CALL lease_watch($1, $2, $3)', JOB, later, '30 s'));
}

db.connect().then(scenario).finally(() => db.end());
